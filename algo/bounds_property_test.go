package algo_test

import (
	"testing"

	"pgregory.net/rapid"

	"limitd/algo"
)

// passed is an admission: when, of how many units, and when it may act.
type passed struct{ at, units, release int64 }

// admissions are those of a random sequence of weighted calls without refunds. The
// numbers are small enough for the sums of these tests to fit.
func admissions(t *rapid.T, s shape, n numbers) (all []passed) {
	l := mustParseExpr(t, s.expr(n))
	var (
		r    record
		now  = rapid.Int64Range(0, 41e17).Draw(t, "start")
		said algo.Verdict
	)
	for range rapid.IntRange(1, 80).Draw(t, "calls") {
		now += drawAnyPause(t, s.unitTime(), said, now)
		cost := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, s.capacity(n))).Draw(t, "cost")
		v, e := l.Decide(r.at(now), now, 0, cost, nil)
		r.apply(e)
		if said = v; v.Allowed {
			all = append(all, passed{now, cost, now + v.Delay})
		}
	}
	return all
}

func drawSmall(t *rapid.T, algorithm string) (shape, numbers) {
	s := shape{algorithm: algorithm, period: rapid.Int64Range(1, 100_000).Draw(t, "period")}
	n := numbers{limit: rapid.Int64Range(1, 200).Draw(t, "limit"), extra: -1}
	if s.gcra() == 1 {
		n.extra = rapid.Int64Range(1, 200).Draw(t, "extra")
	}
	return s, n
}

// worst calls over with each interval from an admission to a later one, and the units
// in it, the first and the last included.
func worst(all []passed, over func(length, units int64)) {
	for i := range all {
		units := int64(0)
		for _, a := range all[i:] {
			units += a.units
			over(a.at-all[i].at, units)
		}
	}
}

// Any interval of t ns: burst + t/T units, of leaky queue + 1 + t/T.
func TestTimesAdmitNoMoreThanBurstAndRefill(t *testing.T) {
	for _, algorithm := range []string{"gcra", "token", "leaky"} {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s, n := drawSmall(t, algorithm)
				worst(admissions(t, s, n), func(length, units int64) {
					if T := s.interval(n); T*units > T*s.capacity(n)+length {
						t.Fatalf("%s admits %d in %d ns", s.expr(n), units, length)
					}
				})
			})
		})
	}
}

// What leaky lets act: one unit each interval, and never two closer than that.
func TestLeakyReleasesNoFasterThanItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := drawSmall(t, "leaky")
		free := int64(0)
		for _, a := range admissions(t, s, n) {
			if a.release < free {
				t.Fatalf("%s: %+v acts before %d, when those before it have", s.expr(n), a, free)
			}
			free = a.release + a.units*s.interval(n)
		}
	})
}

func TestLogAdmitsNoMoreThanItsLimitInAnyPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := drawSmall(t, "log")
		worst(admissions(t, s, n), func(length, units int64) {
			if length < s.unitTime() && units > n.limit {
				t.Fatalf("%s admits %d in %d ns", s.expr(n), units, length)
			}
		})
	})
}

// Any interval of t ns: limit + t * rate, whatever the windows are.
func TestSlidingAdmitsNoMoreThanItsLimitAndRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := drawSmall(t, "sliding")
		worst(admissions(t, s, n), func(length, units int64) {
			if w := s.unitTime(); units*w > n.limit*w+length*n.limit {
				t.Fatalf("%s admits %d in %d ns", s.expr(n), units, length)
			}
		})
	})
}

func TestFixedAdmitsNoMoreThanItsLimitInAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := drawSmall(t, "fixed")
		used := map[int64]int64{}
		for _, a := range admissions(t, s, n) {
			if used[a.at/s.unitTime()] += a.units; used[a.at/s.unitTime()] > n.limit {
				t.Fatalf("%s admits more in the window of %d", s.expr(n), a.at)
			}
		}
	})
}

// Nothing depends on when it happens, only on what lies between; of counters: on
// where in the window it is.
func TestNoAnswerDependsOnTheDate(t *testing.T) {
	for _, algorithm := range algorithms[:6] {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := drawShape(t, algorithm)
				n := s.drawNumbers(t)
				l := mustParseExpr(t, s.expr(n))
				now, shift := int64(0), rapid.Int64Range(0, 1<<60).Draw(t, "shift")
				if s.gcra() == 0 {
					shift -= shift % s.unitTime()
				}
				var here, there record
				var said algo.Verdict
				for range rapid.IntRange(1, 20).Draw(t, "calls") {
					now = min(now+drawAnyPause(t, s.unitTime(), said, now), 1<<60)
					cost := drawAnyCost(t, s.capacity(n))
					v, e := l.Decide(here.at(now), now, 0, cost, nil)
					w, f := l.Decide(there.at(now+shift), now+shift, 0, cost, nil)
					if v != w || e.Op != f.Op || e.Op != algo.None && e.Expiry+shift != f.Expiry {
						t.Fatalf("%s: cost %d at %d: %+v %+v, but shifted by %d: %+v %+v", l, cost, now, v, e, shift, w, f)
					}
					here.apply(e)
					there.apply(f)
					said = v
				}
			})
		})
	}
}

// A limit whose period is k times as long answers, in a world k times as slow, the
// same with all times k times as long.
func TestAnswersScaleWithTime(t *testing.T) {
	for _, algorithm := range algorithms[:6] {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := shape{algorithm: algorithm, period: rapid.Int64Range(1, 1000).Draw(t, "period")}
				// Limits that divide every period, so that no interval is rounded.
				n := numbers{limit: rapid.SampledFrom([]int64{1, 2, 4, 5, 8, 10, 1000}).Draw(t, "limit"), extra: -1}
				if s.gcra() == 1 {
					n.extra = 3
				}
				k := rapid.Int64Range(2, 1000).Draw(t, "k")
				slow := s
				slow.period *= k
				l, m := mustParseExpr(t, s.expr(n)), mustParseExpr(t, slow.expr(n))
				now := int64(0)
				var here, there record
				var said algo.Verdict
				for range rapid.IntRange(1, 20).Draw(t, "calls") {
					now += drawAnyPause(t, s.unitTime(), said, now)
					cost := drawAnyCost(t, s.capacity(n))
					v, e := l.Decide(here.at(now), now, 0, cost, nil)
					w, f := m.Decide(there.at(k*now), k*now, 0, cost, nil)
					here.apply(e)
					there.apply(f)
					said = v
					if v.RetryAfter > 0 {
						// The wait of sliding is rounded up to a ns, here to k of them.
						if algorithm == "sliding" && w.RetryAfter > k*(v.RetryAfter-1) && w.RetryAfter <= k*v.RetryAfter {
							w.RetryAfter = k * v.RetryAfter
						}
						v.RetryAfter *= k
					}
					v.ResetAfter *= k
					v.Delay *= k
					if v != w {
						t.Fatalf("%s: cost %d at %d: %+v, %d times slower: %+v", l, cost, now, v, k, w)
					}
				}
			})
		})
	}
}
