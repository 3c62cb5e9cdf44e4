package algo_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"limitd/algo"
)

// A refund of one charge leaves what there would be if it had been that much smaller:
// the state is that of a history in which it was.
func TestARefundOfAChargeIsAHistoryWithASmallerCharge(t *testing.T) {
	type charge struct{ at, cost, back int64 }
	for _, expr := range []string{"log:40/10s", "sliding:40/10s", "fixed:40/10s"} {
		l := mustParse(t, expr)
		t.Run(expr, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var k keyed
				var charges []charge
				now := int64(1_000_000e9)
				for range rapid.IntRange(1, 30).Draw(t, "calls") {
					now += rapid.Int64Range(0, 6e9).Draw(t, "pause")
					if len(charges) > 0 && rapid.Bool().Draw(t, "refund") {
						c := &charges[rapid.IntRange(0, len(charges)-1).Draw(t, "of")]
						units := rapid.Int64Range(0, c.cost-c.back).Draw(t, "units")
						if units == 0 || now-c.at >= life(l, c.at) {
							continue // it counts no more, or there is nothing to give
						}
						k.refund(t, l, now, units, c.at)
						c.back += units
					} else if cost := rapid.Int64Range(1, 9).Draw(t, "cost"); k.call(l, now, 0, cost).Allowed {
						charges = append(charges, charge{at: now, cost: cost})
					}
					var want keyed
					for _, c := range charges {
						if c.cost > c.back {
							want.call(l, c.at, 0, c.cost-c.back)
						}
					}
					got, _ := l.Decide(k.at(now), now, 0, 1, nil)
					if w, _ := l.Decide(want.at(now), now, 0, 1, nil); got != w {
						t.Fatalf("after %v at %d: %+v, want %+v", charges, now, got, w)
					}
				}
			})
		})
	}
}

// life is for how long a charge made at counts.
func life(l algo.Limit, at int64) int64 {
	const window = int64(10e9)
	switch l.Algorithm {
	case algo.Sliding:
		return 2*window - at%window
	case algo.Fixed:
		return window - at%window
	}
	return window
}

func (k *keyed) at(now int64) []byte {
	if k.expiry <= now {
		return nil
	}
	return k.state
}

func (k *keyed) refund(t *rapid.T, l algo.Limit, now, units, charged int64) {
	state := k.at(now)
	v, e := l.Refund(state, now, 0, units, charged, nil)
	if !v.Allowed || v.RetryAfter != 0 {
		t.Fatalf("a refund is answered %+v", v)
	}
	switch e.Op {
	case algo.Replace:
		k.state = append([]byte(nil), e.State...)
	case algo.Splice:
		k.state = append(append([]byte(nil), state[e.Drop:len(state)-e.Cut]...), e.State...)
	}
	k.expiry = e.Expiry
}

// The buckets keep no charges apart: a refund of one is a refund.
func TestARefundOfAChargeOfABucketIsARefund(t *testing.T) {
	for _, expr := range []string{"10/1m", "token:10/1m,burst=4", "leaky:10/1m,queue=5"} {
		l := mustParse(t, expr)
		_, e := l.Decide(nil, 1e18, 0, 3, nil)
		v, f := l.Refund(e.State, 1e18+1, 0, 2, 1e18, nil)
		w, g := l.Decide(e.State, 1e18+1, 0, -2, nil)
		if v != w || f.Op != g.Op || string(f.State) != string(g.State) || f.Expiry != g.Expiry {
			t.Errorf("%s: %+v %+v, want %+v %+v", expr, v, f, w, g)
		}
	}
}

func FuzzRefund(f *testing.F) {
	for i := range 7 {
		f.Add(uint8(i), []byte("0123456789abcdef"), int64(1e18), int64(3), int64(1e18-5))
	}
	exprs := []string{"9/1m", "token:9/1m", "leaky:9/1m", "fixed:9/1m", "fixed:9/day", "sliding:9/1m", "log:9/1m"}
	f.Fuzz(func(t *testing.T, which uint8, state []byte, now, units, charged int64) {
		l := mustParse(t, exprs[int(which)%len(exprs)])
		if units < 1 || charged > now || now < 0 || now > math.MaxInt64/4 {
			return
		}
		_, e := l.Refund(state, now, 0, units, charged, nil)
		if e.Op == algo.Splice && (e.Drop < 0 || e.Cut < 0 || e.Drop+e.Cut > len(state)) {
			t.Fatalf("an effect that cannot be: drop %d, cut %d of %d", e.Drop, e.Cut, len(state))
		}
	})
}
