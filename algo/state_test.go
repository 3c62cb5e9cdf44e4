package algo_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"limitd/algo"
)

// words is a state of numbers.
func words(ns ...int64) (b []byte) {
	for _, n := range ns {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// What cannot have been written here does not admit: no charge, no refund, no peek.
func TestAStateThatNoDecisionMadeDoesNotAdmit(t *testing.T) {
	const (
		now = int64(1_790_000_000_000e6)
		w   = int64(1e9)
	)
	for limit, states := range map[string][][]byte{
		"fixed:10/1s": {
			make([]byte, 8), make([]byte, 15), make([]byte, 17), make([]byte, 24), make([]byte, 32),
			words(now+w, -1), words(now+w, math.MinInt64), words(now+w, 1<<61+1), words(now+w, math.MaxInt64),
			words(now+w+1, 1), words(math.MaxInt64, 1), words(7e18, 1), words(now-w+1, 1),
		},
		"fixed:10/day": {
			make([]byte, 8), make([]byte, 15), make([]byte, 17),
			words(now+w, -1), words(now+w, 1<<61+1), words(math.MaxInt64, 1), words(7e18, 1),
		},
		"sliding:10/1s": {
			make([]byte, 8), make([]byte, 16), make([]byte, 23), make([]byte, 25), make([]byte, 48),
			words(now, -1, 0), words(now, 0, -1), words(now, 1<<61+1, 0), words(now, 0, 1<<61+1),
			words(now+1, 1, 1), words(1<<62, 1, 1), words(math.MaxInt64, 1, 1), words(math.MinInt64, 1, 1), words(-1<<62-1, 1, 1),
		},
		"log:10/1s": {
			make([]byte, 8), make([]byte, 15), make([]byte, 17), append(words(now, 1), 0),
			words(now, 0), words(now, -1), words(now, 1<<61+1), words(now, math.MinInt64), words(math.MaxInt64, 1), words(1<<62+1, 1),
			words(now, 1, now-1, 1), words(now, 1<<61, now, 1<<61, now, 1),
		},
		"10/1s":       {make([]byte, 7), make([]byte, 9), make([]byte, 16)},
		"token:10/1s": {make([]byte, 7), make([]byte, 9), make([]byte, 16)},
		"leaky:10/1s": {make([]byte, 7), make([]byte, 9), make([]byte, 16)},
	} {
		l := mustParse(t, limit)
		for _, state := range states {
			for _, cost := range []int64{0, 1, 10, 11, math.MaxInt64, -1, math.MinInt64} {
				if l.Interval > 0 && cost < 0 {
					continue // a refund off a debt without end: it stays one
				}
				v, e := l.Decide(state, now, 0, cost, nil)
				if v.Allowed || e.Op != algo.None || v.Remaining != 0 || v.Limit != l.Burst {
					t.Errorf("%s, state % x, cost %d: %+v %+v", limit, state, cost, v, e)
				}
				if never := cost > l.Burst; never != (v.RetryAfter == algo.Never) || v.RetryAfter == 0 || v.ResetAfter <= 0 {
					t.Errorf("%s, state % x, cost %d: %+v", limit, state, cost, v)
				}
			}
		}
	}
}

// How long it denies: as long as any record of the limit lives.
func TestAStateThatNoDecisionMadeDeniesForTwoPeriods(t *testing.T) {
	for limit, period := range map[string]time.Duration{
		"fixed:10/1s": time.Second, "sliding:10/1s": time.Second, "log:10/1s": time.Second,
		"fixed:10/day": 23 * time.Hour, "fixed:10/week": 167 * time.Hour, "fixed:10/month": 671 * time.Hour, "fixed:10/year": 8759 * time.Hour,
	} {
		v, _ := mustParse(t, limit).Decide([]byte("damaged"), 1e18, 0, 1, nil)
		if want := 2 * int64(period); v.RetryAfter != want || v.ResetAfter != want {
			t.Errorf("%s: %+v, want %d", limit, v, want)
		}
	}
}

// The largest and smallest numbers that a decision can have made are read.
func TestTheExtremesOfAStateAreRead(t *testing.T) {
	for _, c := range []struct {
		limit string
		state []byte
		now   int64
	}{
		{"fixed:10/1s", words(6917529027e9, 1<<61), 1<<62 - 1},
		{"fixed:10/1s", words(-1e9, 5), -1e9},
		{"sliding:10/1s", words(4611686018e9, 1<<61, 1<<61), 1<<62 - 1},
		{"sliding:10/1s", words(-4611686018e9, 1<<61, 1<<61), -1 << 60},
		{"log:10/1s", words(1<<62, 1<<61, 1<<62, 1<<61), 1<<62 - 1},
	} {
		// What is used is more than the limit, or over: a refund says that it was read.
		if v, e := mustParse(t, c.limit).Decide(c.state, c.now, 0, -1, nil); !v.Allowed || e.Op == algo.None {
			t.Errorf("%s, state % x: %+v", c.limit, c.state, v)
		}
	}
}

// Where the sums of a counter might wrap, nothing passes, and nothing is said to pass later.
func TestCountersDenyAtTimesThatCannotBe(t *testing.T) {
	const last, most = 1 << 62, 1 << 60
	for _, limit := range []string{"fixed:10/1s", "fixed:10/3812w", "fixed:10/day", "fixed:10/year,tz=Asia/Dhaka", "sliding:10/3812w", "log:10/3812w"} {
		l := mustParse(t, limit)
		for _, c := range []struct {
			now, offset int64
			dated       bool // the offset matters to calendars alone
		}{
			{last, 0, false}, {math.MaxInt64, 0, false}, {-most - 1, 0, false}, {math.MinInt64, 0, false},
			{last - 1, 1, true}, {-most, -1, true}, {1e18, most + 1, true}, {1e18, -most - 1, true},
			{1e18, math.MaxInt64, true}, {1e18, math.MinInt64, true}, {-most, math.MinInt64, true}, {last - 1, math.MaxInt64, true},
		} {
			for _, cost := range []int64{0, 1, -1} {
				v, e := l.Decide(nil, c.now, c.offset, cost, nil)
				if denies := !c.dated || l.Dated(); denies && (v.Allowed || v.RetryAfter != algo.Never || e.Op != algo.None || v.Limit != 10) {
					t.Errorf("%s at %d%+d: %+v %+v", limit, c.now, c.offset, v, e)
				} else if !denies && !v.Allowed {
					t.Errorf("%s at %d: an offset of %d denies", limit, c.now, c.offset)
				}
			}
		}
		for _, now := range []int64{-most, -1, 0, last - 1} {
			v, e := l.Decide(nil, now, 0, 1, nil)
			if !v.Allowed || e.Expiry <= now || e.Expiry != now+v.ResetAfter {
				t.Errorf("%s at %d: %+v %+v", limit, now, v, e)
			}
		}
	}
	for _, c := range []struct{ now, offset int64 }{{1e18, most}, {1e18, -most}, {last - 1, -most}, {-most, most}} {
		if v, _ := mustParse(t, "fixed:10/day").Decide(nil, c.now, c.offset, 1, nil); !v.Allowed {
			t.Errorf("at %d%+d: %+v", c.now, c.offset, v)
		}
	}
}

// A node that lags behind decides with a time before the record's: no error, and no
// more room than there was.
func TestATimeBeforeTheRecordsGivesNoRoom(t *testing.T) {
	now := int64(1_790_000_000e9)
	for _, limit := range []string{"5/10s", "token:5/10s", "leaky:5/10s,queue=4", "fixed:5/10s", "fixed:5/day", "sliding:5/10s", "log:5/10s"} {
		l := mustParse(t, limit)
		var r record
		_, e := l.Decide(nil, now, 0, 5, nil)
		r.apply(e)
		for _, back := range []int64{1, 1e9, 10e9, 15e9, 100e9, 86400e9} {
			v, e := l.Decide(r.state, now-back, 0, 1, nil)
			if v.Allowed || v.Remaining != 0 || v.RetryAfter <= back || e.Op != algo.None {
				t.Errorf("%s, %d ns before: %+v", limit, back, v)
			}
		}
	}
}

// With a buffer that is large enough, a decision allocates nothing, whatever it says.
func TestNoDecisionAllocates(t *testing.T) {
	const now = int64(1_790_000_000e9)
	for _, limit := range []string{
		"5/10s", "token:5/10s", "leaky:5/10s,queue=4", "fixed:5/10s", "fixed:5/day,tz=America/New_York",
		"fixed:5/month", "sliding:5/10s", "log:5/10s",
	} {
		l := mustParse(t, limit)
		buf := make([]byte, 0, 24)
		_, e := l.Decide(nil, now, 0, 3, nil)
		for _, state := range [][]byte{nil, e.State, []byte("damaged")} {
			for _, cost := range []int64{0, 1, 3, 6, -1, -9} {
				if n := testing.AllocsPerRun(20, func() {
					v, e := l.Decide(state, now, 0, cost, buf)
					sink += v.Remaining + e.Expiry + int64(len(l.Ident()))
				}); n != 0 {
					t.Errorf("%s, state % x, cost %d: %v allocations", limit, state, cost, n)
				}
			}
		}
	}
}

// A refund writes again only the entry that it leaves a part of.
func TestARefundOfALogCutsWhatItTakes(t *testing.T) {
	const now = int64(1_790_000_000e9)
	l := mustParse(t, "log:10/1s")
	state := words(now-1e9, 4, now, 2, now+1, 3) // the first one is over
	for _, c := range []struct {
		units int64
		cut   int
		left  []byte
	}{
		{1, 16, words(now+1, 2)}, {2, 16, words(now+1, 1)}, {3, 16, nil},
		{4, 32, words(now, 1)}, {5, 32, nil}, {6, 32, nil}, {math.MaxInt64, 32, nil},
	} {
		_, e := l.Decide(state, now+1, 0, -c.units, nil)
		if e.Op != algo.Splice || e.Drop != 16 || e.Cut != c.cut || string(e.State) != string(c.left) {
			t.Errorf("%d units back: %+v, want a cut of %d and % x", c.units, e, c.cut, c.left)
		}
	}
}
