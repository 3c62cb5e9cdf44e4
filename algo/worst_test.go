package algo_test

import (
	"math/rand/v2"
	"testing"

	"limitd/algo"
)

// admitted is an admission of the record that the tests below drive.
type admitted struct{ at, units int64 }

// drive makes calls of one unit, at the times given, n at each, and returns the
// admissions.
func drive(t *testing.T, l algo.Limit, times []int64, n func(i int) int64) (all []admitted) {
	t.Helper()
	var state []byte
	expiry := int64(0)
	for i, now := range times {
		got := int64(0)
		for range n(i) {
			if now >= expiry {
				state = nil
			}
			v, e := l.Decide(state, now, 0, 1, make([]byte, 0, 64))
			if !v.Allowed {
				break
			}
			got++
			expiry = e.Expiry
			if e.Op == algo.Splice {
				state = append(append([]byte{}, state[e.Drop:len(state)-e.Cut]...), e.State...)
			} else {
				state = e.State
			}
		}
		if got > 0 {
			all = append(all, admitted{now, got})
		}
	}
	return all
}

// most is the largest sum in any (t-w, t].
func most(all []admitted, w int64) (most int64) {
	for i := range all {
		sum := int64(0)
		for j := i; j >= 0 && all[j].at > all[i].at-w; j-- {
			sum += all[j].units
		}
		most = max(most, sum)
	}
	return most
}

const ms = int64(1e6)

// The times that reach the worst case of each algorithm, and what it must be then.
func TestWorstCaseIsReached(t *testing.T) {
	greedy := func(step int64) (times []int64) {
		for at := 1000 * ms; at < 1030*ms; at += step {
			times = append(times, at)
		}
		return times
	}
	around := []int64{1010*ms - 1, 1020*ms - 2} // windows of 10 ms
	for _, tc := range []struct {
		expr  string
		times []int64
		want  int64
	}{
		{"10/10ms", greedy(ms), 19},
		{"token:10/10ms,burst=3", greedy(ms), 12},
		{"7/10ms", greedy(1428572), 13},
		{"leaky:10/10ms", greedy(ms), 10},
		{"leaky:10/10ms,queue=4", greedy(ms), 14},
		{"fixed:10/10ms", []int64{1010*ms - 1, 1010 * ms}, 20},
		{"sliding:10/10ms", around, 19},
		{"sliding:2/10ms", around, 3},
		{"sliding:1/10ms", around, 1},
		{"log:10/10ms", greedy(ms / 4), 10},
	} {
		l := mustParse(t, tc.expr)
		got := most(drive(t, l, tc.times, func(int) int64 { return 1000 }), 10*ms)
		if got != tc.want || l.WorstCase() != tc.want {
			t.Errorf("%s: reached %d, WorstCase says %d, want %d", tc.expr, got, l.WorstCase(), tc.want)
		}
	}
}

// Nobody finds more, whatever the times: at random, most of them near the
// boundaries of windows and one interval behind each other.
func TestWorstCaseIsNeverExceeded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, expr := range []string{"5/10ms", "5/10ms,burst=2", "3/10ms", "leaky:5/10ms,queue=3", "fixed:5/10ms", "sliding:5/10ms", "sliding:1/10ms", "log:5/10ms"} {
		l := mustParse(t, expr)
		for round := range 2000 {
			now := 1000 * ms
			var times []int64
			for range 30 {
				switch rng.IntN(4) {
				case 0:
					now += rng.Int64N(12 * ms)
				case 1:
					now += 2 * ms
				case 2: // to the last ns of the window
					now += 10*ms - 1 - now%(10*ms)
				default:
					now += rng.Int64N(3)
				}
				times = append(times, now)
			}
			all := drive(t, l, times, func(int) int64 { return 1 + rng.Int64N(8) })
			if got := most(all, 10*ms); got > l.WorstCase() {
				t.Fatalf("%s, round %d: %d in a window, WorstCase says %d: %v", expr, round, got, l.WorstCase(), all)
			}
		}
	}
}

func TestAccessors(t *testing.T) {
	for _, tc := range []struct {
		expr                string
		limit, period, size int64
	}{
		{"100/1m,burst=7", 100, 60e9, 8},
		{"leaky:10/1s", 10, 1e9, 8},
		{"fixed:10/month", 10, 0, 16},
		{"sliding:10/1s", 10, 1e9, 24},
		{"log:3/10m", 3, 600e9, 48},
	} {
		l := mustParse(t, tc.expr)
		if l.PerPeriod() != tc.limit || l.PeriodLength() != tc.period || l.StateSize() != tc.size {
			t.Errorf("%s: %d per %d ns, %d bytes", tc.expr, l.PerPeriod(), l.PeriodLength(), l.StateSize())
		}
	}
	throttle, err := algo.NewThrottle(15, 16, 60)
	if err != nil || throttle.PerPeriod() != 0 || throttle.PeriodLength() != 0 || throttle.WorstCase() != 0 {
		t.Errorf("CL.THROTTLE's: %v", throttle)
	}
	if start, end, ok := mustParse(t, "fixed:1/day,tz=Asia/Dhaka").CalendarWindow(0); !ok || start != -6*3600e9 || end != 18*3600e9 {
		t.Errorf("the day of 1970 in Dhaka is %d to %d, %v", start, end, ok)
	}
	if _, _, ok := throttle.CalendarWindow(0); ok {
		t.Error("CL.THROTTLE has a calendar")
	}
}
