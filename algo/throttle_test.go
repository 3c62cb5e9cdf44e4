package algo_test

import (
	"math"
	"testing"

	"limitd/algo"
)

func TestNewThrottleErrorsNameTheArgument(t *testing.T) {
	const zero, big = "Zero rates are not supported", math.MaxInt64
	for _, c := range []struct {
		maxBurst, count, period int64
		arg, text               string
	}{
		{-1, 1, 1, "max_burst", "not -1"},
		{math.MinInt64, 1, 1, "max_burst", "max_burst must be 0 or more"},
		{0, -1, 1, "count", "not -1"},
		{0, 1, -1, "period", "not -1"},
		{0, -1, 0, "count", "not -1"},
		{0, 0, -1, "period", "not -1"},
		{0, 0, 1, "count", zero},
		{0, 1, 0, "period", zero},
		{0, 1e9 + 1, 1, "count", zero},
		{0, big, 1, "count", zero},
		{0, big, 9223372036, "count", zero},               // one unit more than 10^9 per second
		{0, 1, 4611686019, "period", "146 years"},         // 2^62 ns are 4611686018.4 s
		{0, 1, big, "period", "146 years"},                // the quotient needs 94 bits
		{0, 1, 18446744074, "period", "146 years"},        // the quotient needs 65 bits
		{0, 1e9 - 1, big, "period", "146 years"},          // 65 bits
		{1, 1, 2305843010, "max_burst", "146 years"},      //
		{1 << 62, 1e9, 1, "max_burst", "146 years"},       //
		{big, 1e9, 1, "max_burst", "9223372036854775808"}, // max_burst + 1 does not wrap
	} {
		l, err := algo.NewThrottle(c.maxBurst, c.count, c.period)
		if err == nil {
			t.Errorf("NewThrottle(%d, %d, %d) = %+v, want an error for %s", c.maxBurst, c.count, c.period, l, c.arg)
			continue
		}
		checkArgError(t, err, c.text)
		if got := err.(*algo.ArgError).Arg; got != c.arg {
			t.Errorf("NewThrottle(%d, %d, %d) blames %s, want %s", c.maxBurst, c.count, c.period, got, c.arg)
		}
	}
}

func TestNewThrottleAtTheBounds(t *testing.T) {
	for _, c := range []struct{ maxBurst, count, period, interval int64 }{
		{0, 1, 1, 1e9},
		{15, 30, 60, 2e9},
		{6, 7, 60, 8571428571},
		{9, 600000000, 1, 1},
		{9, 1e9, 1, 1},
		{1<<62 - 1, 1e9, 1, 1},
		{0, 1, 4611686018, 4611686018e9},
		{1, 1, 2305843009, 2305843009e9},
		{0, math.MaxInt64, 9223372037, 1},
		{0, math.MaxInt64, math.MaxInt64, 1e9}, // period * 10^9 needs 93 bits
	} {
		l, err := algo.NewThrottle(c.maxBurst, c.count, c.period)
		want := algo.Limit{Algorithm: algo.Throttle, Interval: c.interval, Burst: c.maxBurst + 1}
		if err != nil || l != want {
			t.Errorf("NewThrottle(%d, %d, %d) = %+v, %v, want %+v", c.maxBurst, c.count, c.period, l, err, want)
		}
	}
}

func TestCheckCostRefusesWhatCannotBeRepresented(t *testing.T) {
	for _, c := range []struct {
		interval, most int64 // the largest cost, in both directions
	}{
		{1, 1 << 62},
		{3, (1 << 62) / 3},
		{60_000_000_000, (1 << 62) / 60_000_000_000},
		{1 << 62, 1},
	} {
		l := algo.Limit{Algorithm: algo.Throttle, Interval: c.interval, Burst: 1}
		for _, ok := range []int64{0, 1, -1, c.most, -c.most} {
			if err := l.CheckCost(ok); err != nil {
				t.Errorf("T %d: cost %d: %v", c.interval, ok, err)
			}
		}
		for _, bad := range []int64{c.most + 1, -c.most - 1, math.MaxInt64, math.MinInt64} {
			err := l.CheckCost(bad)
			checkArgError(t, err, "quantity")
		}
	}
}

// A limit that came over a wire may be anything; what passes Check is safe for Decide.
func TestCheckRefusesWhatNoConstructorMakes(t *testing.T) {
	for _, c := range []struct {
		limit algo.Limit
		ok    bool
	}{
		{mustThrottle(t, 15, 30, 60), true},
		{mustThrottle(t, 1<<62-1, 1e9, 1), true},
		{algo.Limit{}, false},
		{algo.Limit{Algorithm: 200, Interval: 1, Burst: 1}, false},
		{algo.Limit{Algorithm: algo.Throttle, Interval: 0, Burst: 1}, false},
		{algo.Limit{Algorithm: algo.Throttle, Interval: 1, Burst: 0}, false},
		{algo.Limit{Algorithm: algo.Throttle, Interval: -1, Burst: -1}, false},
		{algo.Limit{Algorithm: algo.Throttle, Interval: 1<<31 + 1, Burst: 1 << 31}, false},
		{algo.Limit{Algorithm: algo.Throttle, Interval: 1 << 32, Burst: 1 << 32}, false}, // 2^64 wraps to 0
	} {
		if err := c.limit.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v, want ok %v", c.limit, err, c.ok)
		}
	}
}

func TestCeilSecondsNeverTooShort(t *testing.T) {
	for _, c := range []struct{ ns, s int64 }{
		{0, 0}, {1, 1}, {999_999_999, 1}, {1e9, 1}, {1e9 + 1, 2}, {2e9, 2}, {2_000_400_000, 3},
		{math.MaxInt64, 9223372037},
	} {
		if got := algo.CeilSeconds(c.ns); got != c.s {
			t.Errorf("CeilSeconds(%d) = %d, want %d", c.ns, got, c.s)
		}
	}
}

func TestIdentIsOneByteForAnyParameters(t *testing.T) {
	a, b := mustThrottle(t, 0, 1, 1), mustThrottle(t, 100, 7, 60)
	if got := string(a.Ident()); got != "\x01" || got != string(b.Ident()) {
		t.Errorf("Ident = %q and %q, want one byte 1", got, b.Ident())
	}
}

func TestALimitNobodyMadePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a zero Limit decided")
		}
	}()
	algo.Limit{}.Decide(nil, 0, 0, 1, nil)
}

func mustThrottle(t testing.TB, maxBurst, count, period int64) algo.Limit {
	t.Helper()
	l, err := algo.NewThrottle(maxBurst, count, period)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCheckTakesWhatTheConstructorMakesAndNothingElse(t *testing.T) {
	made, err := algo.NewThrottle(15, 16, 86400)
	if err != nil || made.Check() != nil {
		t.Fatalf("%+v: %v, %v", made, err, made.Check())
	}
	for _, l := range []algo.Limit{
		{},
		{Algorithm: 99, Interval: 1, Burst: 1},
		{Algorithm: algo.Throttle, Interval: 0, Burst: 1},
		{Algorithm: algo.Throttle, Interval: -1, Burst: 1},
		{Algorithm: algo.Throttle, Interval: 1, Burst: 0},
		{Algorithm: algo.Throttle, Interval: 1 << 40, Burst: 1 << 40},
	} {
		if l.Check() == nil {
			t.Errorf("%+v passes", l)
		}
	}
}
