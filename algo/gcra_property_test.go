package algo_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"limitd/algo"
	"limitd/algo/model"
)

// Parameters from one nanosecond to decades for one unit, and from one unit to
// as many as fit.
func drawLimit(t *rapid.T) algo.Limit {
	period := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 4_000_000_000)).Draw(t, "period")
	count := rapid.OneOf(
		rapid.Int64Range(1, 100),
		rapid.Int64Range(max(1, period*1e9/50), period*1e9), // T from 1 to 50 ns
	).Draw(t, "count")
	most := (1 << 62) / (period * 1e9 / count) // units of room
	burst := rapid.OneOf(rapid.Int64Range(1, min(20, most)), rapid.Int64Range(1, most)).Draw(t, "burst")
	l, err := algo.NewThrottle(burst-1, count, period)
	if err != nil {
		t.Fatalf("NewThrottle(%d, %d, %d): %v", burst-1, count, period, err)
	}
	return l
}

// Weights around what can pass, peeks, and refunds.
func drawCost(t *rapid.T, l algo.Limit) int64 {
	most := (1 << 62) / l.Interval
	cost := rapid.OneOf(
		rapid.Int64Range(0, min(l.Burst, 3)),
		rapid.Int64Range(0, min(l.Burst+1, most)),
		rapid.Int64Range(-min(l.Burst, 3), 0),
		rapid.Int64Range(-most, most),
	).Draw(t, "cost")
	if err := l.CheckCost(cost); err != nil {
		t.Fatal(err)
	}
	return cost
}

// Pauses of the sizes at which answers change: none, the wait that was just
// said and one ns around it, around one interval, around a full bucket. The
// sum stays far below 2^62.
func drawPause(t *rapid.T, l algo.Limit, said int64) int64 {
	const most = 1 << 53
	said = max(said, 0)
	pause := rapid.OneOf(
		rapid.Just(int64(0)),
		rapid.Int64Range(max(0, said-1), said+1),
		rapid.Int64Range(0, min(l.Interval, most)),
		rapid.Int64Range(0, min(l.Interval*l.Burst, most)),
	).Draw(t, "pause")
	return min(pause, most)
}

// Each answer of a random sequence, with parameters that may change from call
// to call, is the exact bucket's answer; the wait that is said suffices, and one
// ns less does not; so does the time until the record means nothing.
func TestGCRAIsTheExactTokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		now := rapid.Int64Range(0, 1<<61).Draw(t, "start")
		var (
			r      record
			bucket model.Bucket
			said   int64
		)
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				l = drawLimit(t)
			}
			now += drawPause(t, l, said)
			cost := drawCost(t, l)
			v, e := l.Decide(r.at(now), now, 0, cost, nil)
			want := bucket.Take(big.NewInt(now), big.NewInt(l.Interval), big.NewInt(l.Burst), big.NewInt(cost))
			checkAnswer(t, v, want)
			checkEffect(t, v, e, now, cost)
			r.apply(e)
			checkWaits(t, l, &r, v, now, cost)
			said = v.RetryAfter
		}
	})
}

func checkAnswer(t *rapid.T, v algo.Verdict, want model.Answer) {
	t.Helper()
	wait := big.NewInt(algo.Never)
	if want.Wait != nil {
		wait = want.Wait
	}
	if v.Allowed != want.Allowed || !equal(v.Remaining, want.Remaining) || !equal(v.RetryAfter, wait) || !equal(v.ResetAfter, want.Reset) {
		t.Fatalf("got %+v, want allowed %v remaining %v retry %v reset %v", v, want.Allowed, want.Remaining, wait, want.Reset)
	}
	if v.Remaining > v.Limit {
		t.Fatalf("remaining above the limit: %+v", v)
	}
}

func equal(a int64, b *big.Int) bool { return b.IsInt64() && b.Int64() == a }

func checkEffect(t *rapid.T, v algo.Verdict, e algo.Effect, now, cost int64) {
	t.Helper()
	wantOp := algo.Replace
	if cost == 0 || !v.Allowed {
		wantOp = algo.None
	}
	if e.Op != wantOp {
		t.Fatalf("cost %d, allowed %v: effect %+v", cost, v.Allowed, e)
	}
	if e.Op == algo.Replace && e.Expiry-now != v.ResetAfter {
		t.Fatalf("the record lives %d ns, but means nothing after %d", e.Expiry-now, v.ResetAfter)
	}
}

func checkWaits(t *rapid.T, l algo.Limit, r *record, v algo.Verdict, now, cost int64) {
	t.Helper()
	after := func(wait, cost int64) algo.Verdict {
		w, _ := l.Decide(r.at(now+wait), now+wait, 0, cost, nil)
		return w
	}
	// Beyond 2^62 a charge may not fit any more, and is denied for that.
	if v.RetryAfter > 0 && now+v.RetryAfter <= 1<<62 {
		if !after(v.RetryAfter, cost).Allowed {
			t.Fatalf("cost %d does not pass after waiting %d ns", cost, v.RetryAfter)
		}
		if after(v.RetryAfter-1, cost).Allowed {
			t.Fatalf("cost %d passes before %d ns", cost, v.RetryAfter)
		}
	}
	if w := after(v.ResetAfter, 0); w.ResetAfter != 0 || w.Remaining != l.Burst {
		t.Fatalf("bucket not full after %d ns: %+v", v.ResetAfter, w)
	}
	if v.ResetAfter > 0 {
		if w := after(v.ResetAfter-1, 0); w.ResetAfter != 1 || w.Remaining == l.Burst {
			t.Fatalf("bucket full before %d ns: %+v", v.ResetAfter, w)
		}
	}
}

// The promise: over any interval of t ns, what one limit let through, less what
// was given back, is at most burst + t/T; calls under another limit on the same
// record in between only make it less. Checked for every interval between two
// calls at once: with used(i) the units charged by call i, prefix sum S, it says
// T*S(j) - t(j) <= T*Burst + min over i <= j of T*S(i-1) - t(i).
func TestNoIntervalAdmitsMoreThanBurstPlusRefill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Small enough for the sums of this test to fit: T*units <= 2^43.
		draw := func() algo.Limit {
			l, err := algo.NewThrottle(rapid.Int64Range(0, 99).Draw(t, "max_burst"), rapid.Int64Range(1, 1000).Draw(t, "count"), rapid.Int64Range(1, 60).Draw(t, "period"))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		limits := []algo.Limit{draw(), draw()}
		two := rapid.Bool().Draw(t, "two limits on the record")
		charged := make([]int64, 2) // T*S, ns
		lowest := []int64{1 << 62, 1 << 62}

		now, said := int64(0), int64(0)
		var r record
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			i := 0
			if two {
				i = rapid.IntRange(0, 1).Draw(t, "limit")
			}
			l := limits[i]
			now += drawPause(t, l, said)
			cost := rapid.Int64Range(0, l.Burst).Draw(t, "cost")
			if !two { // under two prices the units of a refund are not those that were charged
				cost = rapid.Int64Range(-l.Burst, l.Burst).Draw(t, "cost or refund")
			}
			lowest[i] = min(lowest[i], charged[i]-now)
			before := max(0, r.expiry-now)
			v, e := l.Decide(r.at(now), now, 0, cost, nil)
			r.apply(e)
			said = v.RetryAfter
			if e.Op == algo.None {
				continue
			}
			charged[i] += max(0, r.expiry-now) - before // a refund counts for what it gave
			if got := charged[i] - now - lowest[i]; got > l.Interval*l.Burst {
				t.Fatalf("limit %+v let %d ns worth through where %d is the most", l, got, l.Interval*l.Burst)
			}
		}
	})
}

// Nothing depends on when it happens, only on what lies between.
func TestDecisionsDoNotDependOnTheDate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		now, shift := int64(0), rapid.Int64Range(0, 1<<61).Draw(t, "shift")
		var here, there record
		said := int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			now += drawPause(t, l, said)
			cost := drawCost(t, l)
			v, e := l.Decide(here.at(now), now, 0, cost, nil)
			w, f := l.Decide(there.at(now+shift), now+shift, 0, cost, nil)
			if v != w || e.Op != f.Op {
				t.Fatalf("cost %d at %d: %+v %+v, but shifted by %d: %+v %+v", cost, now, v, e, shift, w, f)
			}
			if e.Op != algo.None && e.Expiry+shift != f.Expiry {
				t.Fatalf("expiry %d, shifted by %d: %d", e.Expiry, shift, f.Expiry)
			}
			here.apply(e)
			there.apply(f)
			said = v.RetryAfter
		}
	})
}
