package algo_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"limitd/algo"
)

func tat(ns int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(ns)) }

// The layout is on disk: eight bytes, little endian, equal to the expiry.
func TestGCRAStateLayout(t *testing.T) {
	l := mustThrottle(t, 9, 1, 1)
	_, e := l.Decide(nil, 0x0102030405060708, 0, 2, nil)
	want := []byte{0x08, 0x9b, 0x3b, 0x7c, 0x04, 0x03, 0x02, 0x01}
	if !bytes.Equal(e.State, want) || e.Expiry != 0x010203047c3b9b08 || e.Op != algo.Replace || e.Drop != 0 {
		t.Errorf("effect %+v, want state % x as state and expiry", e, want)
	}
}

func TestGCRAAtTheExtremes(t *testing.T) {
	const (
		far  = 1<<62 - 1 // the last ns for which no sum can overflow, in 2116
		full = 1 << 62
	)
	second := mustThrottle(t, 0, 1, 1)
	fastest := mustThrottle(t, 1<<62-1, 1e9, 1)  // T = 1 ns
	slowest := mustThrottle(t, 0, 1, 4611686018) // 146 years
	whole := algo.Limit{Algorithm: algo.Throttle, Interval: full, Burst: 1}
	for _, c := range []struct {
		name      string
		limit     algo.Limit
		state     []byte
		now, cost int64
		want      algo.Verdict
		tat       int64 // of the effect; -1: none
	}{
		{"all of 2^62 units at once", fastest, nil, far, full, algo.Verdict{true, full, 0, 0, full, 0}, math.MaxInt64},
		{"then one more", fastest, tat(math.MaxInt64), far, 1, algo.Verdict{false, full, 0, 1, full, 0}, -1},
		{"then all again", fastest, tat(math.MaxInt64), far, full, algo.Verdict{false, full, 0, full, full, 0}, -1},
		{"then a ns later", fastest, tat(math.MaxInt64), far + 1, 0, algo.Verdict{true, full, 1, 0, full - 1, 0}, -1},
		{"more than there ever is", second, nil, 5, math.MaxInt64, algo.Verdict{false, 1, 1, algo.Never, 0, 0}, -1},
		{"one in 146 years", slowest, nil, far, 1, algo.Verdict{true, 1, 0, 0, 4611686018e9, 0}, far + 4611686018e9},
		{"a unit of 2^62 ns", whole, nil, 0, 1, algo.Verdict{true, 1, 0, 0, full, 0}, full},
		{"its second", whole, tat(full), 0, 1, algo.Verdict{false, 1, 0, full, full, 0}, -1},
		{"its refund", whole, tat(full), 0, -1, algo.Verdict{true, 1, 1, 0, 0, 0}, 0},
		{"the largest refund", fastest, tat(full), 1, math.MinInt64, algo.Verdict{true, full, full, 0, 0, 0}, 1},
		{"a refund of more than 64 bits", whole, tat(full), 7, math.MinInt64, algo.Verdict{true, 1, 1, 0, 0, 0}, 7},
		{"a refund to nothing", second, nil, 9, -1, algo.Verdict{true, 1, 1, 0, 0, 0}, 9},
		{"a refund of an expired record", second, tat(8), 9, -1, algo.Verdict{true, 1, 1, 0, 0, 0}, 9},
		{"a refund that leaves a ns", second, tat(1e9 + 10), 9, -1, algo.Verdict{true, 1, 0, 0, 1, 0}, 10},
		{"a refund below a debt that outgrew the limit", second, tat(5e9), 0, -1, algo.Verdict{true, 1, 0, 0, 4e9, 0}, 4e9},
		{"a tat that is now", second, tat(9), 9, 1, algo.Verdict{true, 1, 0, 0, 1e9, 0}, 1e9 + 9},
		{"a tat far in the past", second, tat(math.MinInt64), 9, 1, algo.Verdict{true, 1, 0, 0, 1e9, 0}, 1e9 + 9},
		{"time at its very end", second, nil, math.MaxInt64, 1, algo.Verdict{false, 1, 1, algo.Never, 0, 0}, -1},
		{"a debt of more than 63 bits", second, tat(math.MaxInt64), -1, 1, algo.Verdict{false, 1, 0, math.MaxInt64, math.MaxInt64, 0}, -1},
		{"its refund, which says no debt below 0", second, tat(math.MaxInt64), -61, -1, algo.Verdict{true, 1, 0, 0, math.MaxInt64 - 1e9, 0}, math.MaxInt64 - 1e9},
		{"a time before 1970", second, nil, -5e9, 1, algo.Verdict{true, 1, 0, 0, 1e9, 0}, -4e9},
		{"an empty state is no state", second, []byte{}, 9, 1, algo.Verdict{true, 1, 0, 0, 1e9, 0}, 1e9 + 9},
		{"a short state must not admit", second, make([]byte, 7), 9, 1, algo.Verdict{false, 1, 0, math.MaxInt64 - 9, math.MaxInt64 - 9, 0}, -1},
		{"nor a long one", second, make([]byte, 9), 9, 0, algo.Verdict{false, 1, 0, math.MaxInt64 - 9 - 1e9, math.MaxInt64 - 9, 0}, -1},
	} {
		got, e := c.limit.Decide(c.state, c.now, 0, c.cost, nil)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		switch {
		case c.tat == -1 && e.Op != algo.None:
			t.Errorf("%s: effect %+v, want none", c.name, e)
		case c.tat != -1 && (e.Op != algo.Replace || e.Expiry != c.tat || !bytes.Equal(e.State, tat(c.tat))):
			t.Errorf("%s: effect %+v, want tat %d", c.name, e, c.tat)
		}
	}
}

// A record that a refund filled up reads as absent from then on.
func TestARefundToAFullBucketLeavesNothing(t *testing.T) {
	l := mustThrottle(t, 4, 1, 1)
	var r record
	_, e := l.Decide(nil, 100, 0, 3, nil)
	r.apply(e)
	_, e = l.Decide(r.at(100), 100, 0, -3, nil)
	r.apply(e)
	if got := r.at(100); got != nil {
		t.Errorf("record % x at its own time, want none", got)
	}
}

func TestDecideUsesTheBufferItIsGiven(t *testing.T) {
	l := mustThrottle(t, 4, 1, 1)
	buf := make([]byte, 3, 16)
	if _, e := l.Decide(nil, 100, 0, 1, buf); &e.State[0] != &buf[0] {
		t.Error("the new state is not in the buffer")
	}
	state := tat(50e9)
	before := bytes.Clone(state)
	l.Decide(state, 100, 0, 1, buf)
	if !bytes.Equal(state, before) {
		t.Error("a denied call changed the state it read")
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 8)
	state := tat(1000)
	for _, cost := range []int64{1, 0, -1, 100} {
		var sink int64
		n := testing.AllocsPerRun(100, func() {
			l, err := algo.NewThrottle(15, 30, 60)
			if err != nil || l.CheckCost(cost) != nil {
				t.Fatal(err)
			}
			v, e := l.Decide(state, 500, 0, cost, buf)
			sink += v.Remaining + e.Expiry + int64(len(l.Ident()))
		})
		if n != 0 {
			t.Errorf("cost %d: %v allocations for one call", cost, n)
		}
	}
}

// FuzzDecide compares every decision, whatever the state's bytes, with the
// textbook's formula in integers without bounds.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(nil), int64(1.79e18), int64(1), int64(15), int64(30), int64(60))
	f.Add(tat(1.79e18+5e9), int64(1.79e18), int64(-2), int64(0), int64(1), int64(86400))
	f.Add(tat(math.MaxInt64), int64(1<<62), int64(math.MaxInt64), int64(0), int64(1), int64(4611686018))
	f.Add(tat(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(1<<62-1), int64(1e9), int64(1))
	f.Add([]byte("damaged"), int64(math.MaxInt64), int64(0), int64(4), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, state []byte, now, cost, maxBurst, count, period int64) {
		l, err := algo.NewThrottle(maxBurst, count, period)
		if err != nil {
			return
		}
		before := bytes.Clone(state)
		v, e := l.Decide(state, now, 0, cost, nil)
		if !bytes.Equal(state, before) {
			t.Fatal("the state was written to")
		}
		if v.Limit != l.Burst || v.Remaining < 0 || v.Remaining > v.Limit || v.ResetAfter < 0 ||
			v.Allowed != (v.RetryAfter == 0) || v.RetryAfter < algo.Never {
			t.Fatalf("impossible verdict %+v", v)
		}
		if wantEffect := v.Allowed && cost != 0; wantEffect != (e.Op == algo.Replace) {
			t.Fatalf("verdict %+v with effect %+v", v, e)
		}
		if e.Op == algo.Replace && (len(e.State) != 8 || !bytes.Equal(e.State, tat(e.Expiry)) || e.Expiry < now) {
			t.Fatalf("effect %+v at %d", e, now)
		}
		checkFormula(t, l, state, now, cost, v, e)
	})
}

// checkFormula decides again in big integers: denied when
// now < max(tat, now) + T*cost - tau.
func checkFormula(t *testing.T, l algo.Limit, state []byte, now, cost int64, v algo.Verdict, e algo.Effect) {
	base := now
	switch len(state) {
	case 0:
	case 8:
		base = max(base, int64(binary.LittleEndian.Uint64(state)))
	default:
		base = math.MaxInt64
	}
	bigNow, T := big.NewInt(now), big.NewInt(l.Interval)
	next := new(big.Int).Mul(T, big.NewInt(cost))
	next.Add(next, big.NewInt(base))
	tau := new(big.Int).Mul(T, big.NewInt(l.Burst))
	allowed := cost < 0 || new(big.Int).Sub(next, tau).Cmp(bigNow) <= 0
	if allowed && cost > 0 && !next.IsInt64() {
		allowed = false // a tat that cannot be written
	}
	if v.Allowed != allowed {
		t.Fatalf("limit %+v state % x now %d cost %d: %+v, but tat %d + inc = %v", l, state, now, cost, v, base, next)
	}
	if e.Op == algo.Replace && cost > 0 && e.Expiry != next.Int64() {
		t.Fatalf("new tat %d, want %v", e.Expiry, next)
	}
	if now >= 0 && e.Op == algo.Replace && cost < 0 && big.NewInt(e.Expiry).Cmp(maxBig(next, bigNow)) != 0 {
		t.Fatalf("tat after the refund %d, want %v or now %d", e.Expiry, next, now)
	}
}

func maxBig(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

var sink int64

// BenchmarkCall is the whole of what one CL.THROTTLE costs here: its limit, its
// cost's check, its decision.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name  string
		state []byte
	}{{"admitted", nil}, {"denied", tat(1 << 60)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 8)
			for i := int64(0); b.Loop(); i++ {
				l, err := algo.NewThrottle(15, 30, 60)
				if err == nil {
					err = l.CheckCost(1)
				}
				if err != nil {
					b.Fatal(err)
				}
				v, e := l.Decide(c.state, 1000+i, 0, 1, buf)
				sink += v.Remaining + e.Expiry
			}
		})
	}
}
