package algo_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"limitd/algo"
)

// FuzzParse: whatever is read prints as an expression that is read as the same limit,
// and decides; whatever is not, is an error with a place.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"100/1m", "gcra:30/1m,burst=16", "log:3/10m", "leaky:10/1s,queue=50", "fixed:1000/day,tz=Asia/Dhaka",
		"fixed:1/week,start=sun,hour=23", "sliding:7/1w2d3h4m5s6ms", "token:1/4611686018427ms", "10/1x", "10/", "é", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := algo.Parse(text)
		if err != nil {
			var e *algo.ExprError
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(text) || e.Expr != text || e.Msg == "" {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		again, err := algo.Parse(l.String())
		if err != nil || again.String() != l.String() || again.Interval != l.Interval || again.Burst != l.Burst ||
			again.Algorithm != l.Algorithm || again.PerPeriod() != l.PerPeriod() || !bytes.Equal(again.Ident(), l.Ident()) {
			t.Fatalf("%q prints as %s, which reads as %s, %v", text, l, again, err)
		}
		if id, err := algo.ReadIdent(l.Ident()); err != nil || id.Algorithm != l.Algorithm || id.Period != l.Period() {
			t.Fatalf("%s: identity %+v, %v", l, id, err)
		}
		if l.Burst < 1 || l.Interval < 0 || l.Interval > 0 && l.Burst > (1<<62)/l.Interval {
			t.Fatalf("%s: %+v", l, l)
		}
		for _, cost := range []int64{0, 1, l.Burst, math.MaxInt64, math.MinInt64} {
			checkSane(t, l, nil, 1_790_000_000e9, 0, cost)
		}
	})
}

// FuzzReadIdent: what can be read is the identity of an expression, to the byte,
// unless its zone is not known here.
func FuzzReadIdent(f *testing.F) {
	f.Add([]byte{1})
	for _, text := range []string{"100/1m", "log:3/10m", "fixed:1/day", "fixed:1/week,start=sun,hour=23,tz=Asia/Dhaka"} {
		f.Add(mustParse(f, text).Ident())
	}
	f.Fuzz(func(t *testing.T, ident []byte) {
		id, err := algo.ReadIdent(ident)
		algo.Used(ident, ident, 1_790_000_000e9, 0)
		if err != nil || id.Algorithm == algo.Throttle {
			return
		}
		text := fmt.Sprintf("%s:1/%s", id.Algorithm.Name(), id.Period)
		if id.Zone != "" {
			text += fmt.Sprintf(",tz=%s,hour=%d", id.Zone, id.Hour)
		}
		if id.Start != "" {
			text += ",start=" + id.Start
		}
		l, err := algo.Parse(text)
		if err != nil && strings.Contains(err.Error(), "time zone") {
			return
		}
		if err != nil || !bytes.Equal(l.Ident(), ident) {
			t.Fatalf("%x reads as %s, whose identity is %x, %v", ident, text, l.Ident(), err)
		}
	})
}

// A target for each decoder of a state: any bytes, any time, any cost. No panic, an
// answer that can be, and what cannot be read never admits.
func FuzzGCRAState(f *testing.F)  { fuzzState(f, 8, "1000/10s", "token:1/1ms,burst=1000000000") }
func FuzzLeakyState(f *testing.F) { fuzzState(f, 8, "leaky:1000/10s,queue=7", "leaky:1/7000w") }
func FuzzFixedState(f *testing.F) {
	fuzzState(f, 16, "fixed:5/10s", "fixed:1000000000/3812w", "fixed:5/day,tz=America/New_York,hour=2", "fixed:5/year,tz=Pacific/Apia")
}
func FuzzSlidingState(f *testing.F) {
	fuzzState(f, 24, "sliding:5/10s", "sliding:1000000/1ms", "sliding:2000000000000000000/3812w")
}
func FuzzLogState(f *testing.F) { fuzzState(f, 16, "log:5/10s", "log:2000000000000000000/3812w") }

func fuzzState(f *testing.F, size int, limits ...string) {
	const now = int64(1_790_000_000e9)
	f.Add([]byte("damaged"), now, int64(0), int64(1), byte(0))
	f.Add(make([]byte, size), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), byte(1))
	f.Add(bytes.Repeat([]byte{255}, 2*size), int64(math.MinInt64), int64(-1), int64(math.MinInt64), byte(2))
	for i, limit := range limits {
		_, e := mustParse(f, limit).Decide(nil, now, 0, 1, nil)
		f.Add(e.State, now+1, int64(0), int64(2), byte(i))
		f.Add(e.State, now+1, int64(-3600e9), int64(-1), byte(i))
		f.Add(append(e.State, e.State...), now+9e9, int64(0), int64(1), byte(i))
	}
	f.Fuzz(func(t *testing.T, state []byte, now, offset, cost int64, which byte) {
		l := mustParse(t, limits[int(which)%len(limits)])
		before := bytes.Clone(state)
		v := checkSane(t, l, state, now, offset, cost)
		if !bytes.Equal(state, before) {
			t.Fatal("the state was written to")
		}
		wrong := len(state) != size
		if l.Algorithm == algo.Log {
			wrong = len(state)%size != 0
		}
		if len(state) > 0 && wrong && v.Allowed && !(l.Interval > 0 && cost < 0) {
			t.Fatalf("%s: a state of %d bytes admits: %+v", l, len(state), v)
		}
		algo.Used(l.Ident(), state, now, offset)
	})
}

// checkSane decides, and checks what holds whatever the arguments are.
func checkSane(t *testing.T, l algo.Limit, state []byte, now, offset, cost int64) algo.Verdict {
	t.Helper()
	v, e := l.Decide(state, now, offset, cost, nil)
	if v.Limit != l.Burst || v.Remaining < 0 || v.Remaining > v.Limit || v.ResetAfter < 0 || v.Delay < 0 ||
		v.Allowed != (v.RetryAfter == 0) || v.RetryAfter < algo.Never || cost < 0 && v.Delay != 0 {
		t.Fatalf("%s, cost %d: impossible verdict %+v", l, cost, v)
	}
	if cost > l.Burst && v.RetryAfter != algo.Never {
		t.Fatalf("%s, cost %d: it can never pass, but %+v", l, cost, v)
	}
	if (v.Allowed && cost != 0) != (e.Op != algo.None) {
		t.Fatalf("%s, cost %d: verdict %+v with effect %+v", l, cost, v, e)
	}
	if e.Op == algo.None || l.Interval > 0 && now < 0 { // before 1970 a debt may not fit
		return v
	}
	if e.Drop < 0 || e.Cut < 0 || e.Drop+e.Cut > len(state) || e.Expiry < now || cost > 0 && e.Expiry == now {
		t.Fatalf("%s at %d on %d bytes: effect %+v", l, now, len(state), e)
	}
	// What a decision leaves can be read, and counts.
	next := e.State
	if e.Op == algo.Splice {
		next = append(bytes.Clone(state[e.Drop:len(state)-e.Cut]), e.State...)
	}
	if w, _ := l.Decide(next, now, offset, -1, nil); !w.Allowed {
		t.Fatalf("%s at %d: % x becomes % x, which cannot be read", l, now, state, next)
	}
	if w, _ := l.Decide(next, now, offset, 0, nil); w.Remaining != v.Remaining || w.ResetAfter != v.ResetAfter {
		t.Fatalf("%s at %d: %+v, then %+v", l, now, v, w)
	}
	return v
}
