package algo_test

import (
	"errors"
	"strings"
	"testing"

	"limitd/algo"
)

// What is written, and how it is printed; "": as it is written.
func TestParseAndPrint(t *testing.T) {
	for _, c := range []struct {
		text, printed   string
		algorithm       algo.Algorithm
		interval, burst int64
	}{
		{"100/1m", "", algo.GCRA, 600e6, 100},
		{"gcra:100/1m", "100/1m", algo.GCRA, 600e6, 100},
		{"gcra:30/1m,burst=16", "30/1m,burst=16", algo.GCRA, 2e9, 16},
		{"gcra:30/1m,burst=30", "30/1m", algo.GCRA, 2e9, 30},
		{"7/1m", "", algo.GCRA, 8571428572, 7}, // rounded up
		{"1000000000/1s", "", algo.GCRA, 1, 1e9},
		{"1000000/1ms", "", algo.GCRA, 1, 1e6},
		{"999999/1ms", "", algo.GCRA, 2, 999999}, // rounded up
		{"1/4611686018427ms", "1/7625w23h53m38s427ms", algo.GCRA, 4611686018427e6, 1},
		{"1000000000/1s,burst=4611686018427387904", "", algo.GCRA, 1, 1 << 62},
		{"0010/01m", "10/1m", algo.GCRA, 6e9, 10},
		{"10/250ms", "", algo.GCRA, 25e6, 10},
		{"10/10s", "", algo.GCRA, 1e9, 10},
		{"10/90m", "10/1h30m", algo.GCRA, 540e9, 10},
		{"10/1h30m", "", algo.GCRA, 540e9, 10},
		{"10/24h", "10/1d", algo.GCRA, 8640e9, 10},
		{"10/1d", "", algo.GCRA, 8640e9, 10},
		{"10/7d", "10/1w", algo.GCRA, 60480e9, 10},
		{"10/1w", "", algo.GCRA, 60480e9, 10},
		{"10/1w2d3h4m5s6ms", "", algo.GCRA, 78864500600000, 10},
		{"10/1h0m", "10/1h", algo.GCRA, 360e9, 10},
		{"10/60000ms", "10/1m", algo.GCRA, 6e9, 10},
		{"token:5/1s", "", algo.Token, 200e6, 5},
		{"token:5/1s,burst=10", "", algo.Token, 200e6, 10},
		{"leaky:10/1s", "", algo.Leaky, 100e6, 1},
		{"leaky:10/1s,queue=0", "leaky:10/1s", algo.Leaky, 100e6, 1},
		{"leaky:10/1s,queue=50", "", algo.Leaky, 100e6, 51},
		{"leaky:1000000000/1s,queue=4611686018427387903", "", algo.Leaky, 1, 1 << 62},
		{"fixed:10/1w", "", algo.Fixed, 0, 10},
		{"fixed:10/36h", "fixed:10/1d12h", algo.Fixed, 0, 10},
		{"fixed:10/2305843009213ms", "fixed:10/3812w3d23h56m49s213ms", algo.Fixed, 0, 10},
		{"fixed:1000/day,tz=Asia/Dhaka", "", algo.Fixed, 0, 1000},
		{"fixed:1/day,tz=UTC,hour=0", "fixed:1/day", algo.Fixed, 0, 1},
		{"fixed:1/week,start=mon", "fixed:1/week", algo.Fixed, 0, 1},
		{"fixed:1/week,hour=9,start=sun,tz=Europe/London", "fixed:1/week,tz=Europe/London,start=sun,hour=9", algo.Fixed, 0, 1},
		{"fixed:1/month,hour=23", "", algo.Fixed, 0, 1},
		{"fixed:31532400000000000/year", "", algo.Fixed, 0, 31532400e9},
		{"sliding:100/1m", "", algo.Sliding, 0, 100},
		{"log:3/10m", "", algo.Log, 0, 3},
		{"log:1000000000/1s", "", algo.Log, 0, 1e9},
	} {
		if c.printed == "" {
			c.printed = c.text
		}
		l := mustParse(t, c.text)
		if l.String() != c.printed || l.Algorithm != c.algorithm || l.Interval != c.interval || l.Burst != c.burst {
			t.Errorf("%s: %s, %+v, want %s, interval %d, burst %d", c.text, l, l, c.printed, c.interval, c.burst)
		}
		again := mustParse(t, l.String())
		if again.String() != c.printed || again.Interval != l.Interval || again.Burst != l.Burst || string(again.Ident()) != string(l.Ident()) {
			t.Errorf("%s prints as %s, which is %+v", c.text, l, again)
		}
	}
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	long := "10/1m" + strings.Repeat(",", 124)
	for _, c := range []struct{ text, want string }{
		{"", `"": limit is missing: it is a whole number, 1 or more (character 1)`},
		{"10", `10: a limit is written limit/period, like 100/1m: the period is missing (character 3)`},
		{"10,burst=3/1m", `10,burst=3/1m: a limit is written limit/period, like 100/1m: the period is missing (character 3)`},
		{"/1m", `/1m: limit is missing: it is a whole number, 1 or more (character 1)`},
		{"10/", `10/: the period is missing: a number and a unit, like 1m; use ms, s, m, h, d, w (character 4)`},
		{"10/,burst=1", `10/,burst=1: the period is missing: a number and a unit, like 1m; use ms, s, m, h, d, w (character 4)`},
		{"10/1x", `10/1x: unknown unit "x", use ms, s, m, h, d, w (character 5)`},
		{"10/1 m", `10/1 m: unknown unit " m", use ms, s, m, h, d, w (character 5)`},
		{"10/1m/1", `10/1m/1: unknown unit "m/", use ms, s, m, h, d, w (character 5)`},
		{"10/1M", `10/1M: unknown unit "M", use ms, s, m, h, d, w (character 5)`},
		{"10/1", `10/1: the unit of the period is missing, use ms, s, m, h, d, w (character 5)`},
		{"10/1h30", `10/1h30: the unit of the period is missing, use ms, s, m, h, d, w (character 8)`},
		{"10/m", `10/m: period: a number was expected, not "m"; write a number and a unit, like 1m (character 4)`},
		{"10/-1m", `10/-1m: period: a number was expected, not "-"; write a number and a unit, like 1m (character 4)`},
		{"10/1.5m", `10/1.5m: unknown unit ".", use ms, s, m, h, d, w (character 5)`},
		{"10/é", `10/é: period: a number was expected, not "é"; write a number and a unit, like 1m (character 4)`},
		{"10/1m1h", `10/1m1h: unit h stands behind a smaller or equal one: write the larger unit first, each once (character 7)`},
		{"10/1m1m", `10/1m1m: unit m stands behind a smaller or equal one: write the larger unit first, each once (character 7)`},
		{"10/0s", `10/0s: the period must be longer than 0 (character 4)`},
		{"10/0h0m", `10/0h0m: the period must be longer than 0 (character 4)`},
		{"1/7626w", `1/7626w: the period is too long: at most 2^62 ns (146 years) (character 3)`},
		{"1/7625w24h", `1/7625w24h: the period is too long: at most 2^62 ns (146 years) (character 8)`},
		{"1/4611686018428ms", `1/4611686018428ms: the period is too long: at most 2^62 ns (146 years) (character 3)`},
		{"1/99999999999999999999s", `1/99999999999999999999s: the period is too long: at most 2^62 ns (146 years) (character 3)`},
		{"1/9223372036854775807w", `1/9223372036854775807w: the period is too long: at most 2^62 ns (146 years) (character 3)`},
		{"log:1/2305843009214ms", `log:1/2305843009214ms: the period is too long: at most 2^61 ns (73 years) for this algorithm (character 7)`},
		{"fixed:1/3813w", `fixed:1/3813w: the period is too long: at most 2^61 ns (73 years) for this algorithm (character 9)`},
		{"sliding:1/3813w", `sliding:1/3813w: the period is too long: at most 2^61 ns (73 years) for this algorithm (character 11)`},
		{"0/1m", `0/1m: limit must be 1 or more, not 0 (character 1)`},
		{"-5/1m", `-5/1m: limit is not a whole number: unexpected "-" (character 1)`},
		{"+5/1m", `+5/1m: limit is not a whole number: unexpected "+" (character 1)`},
		{"1e3/1m", `1e3/1m: limit is not a whole number: unexpected "e" (character 2)`},
		{"1 /1m", `1 /1m: limit is not a whole number: unexpected " " (character 2)`},
		{"9223372036854775808/1m", `9223372036854775808/1m: limit 9223372036854775808 is too large (character 1)`},
		{"1000000001/1s", `1000000001/1s: more than 10^9 per second: 1000000001 in 1000000000 ns (character 1)`},
		{"log:1000001/1ms", `log:1000001/1ms: more than 10^9 per second: 1000001 in 1000000 ns (character 5)`},
		{"fixed:82800000000001/day", `fixed:82800000000001/day: more than 10^9 per second: 82800000000001 in 82800000000000 ns (character 7)`},
		{"lo:1/1m", `lo:1/1m: unknown algorithm "lo", use gcra, token, leaky, fixed, sliding, log (character 1)`},
		{"GCRA:1/1m", `GCRA:1/1m: unknown algorithm "GCRA", use gcra, token, leaky, fixed, sliding, log (character 1)`},
		{":1/1m", `:1/1m: unknown algorithm "", use gcra, token, leaky, fixed, sliding, log (character 1)`},
		{"log:log:1/1m", `log:log:1/1m: limit is not a whole number: unexpected "l" (character 5)`},
		{"1/1m:x", `1/1m:x: unknown unit "m:x", use ms, s, m, h, d, w (character 4)`},
		{"10/day", `10/day: day is a calendar window, which only fixed has: write fixed:10/day, or a duration like 1d (character 4)`},
		{"log:3/month", `log:3/month: month is a calendar window, which only fixed has: write fixed:3/month, or a duration like 1d (character 7)`},
		{"fixed:3/days", `fixed:3/days: period: a number was expected, not "d"; write a number and a unit, like 1m (character 9)`},
		{"10/1m,", `10/1m,: an option is missing behind the comma (character 7)`},
		{"10/1m,,burst=1", `10/1m,,burst=1: an option is missing behind the comma (character 7)`},
		{"10/1m,burst", `10/1m,burst: burst needs a value: burst=... (character 12)`},
		{"10/1m,burst=", `10/1m,burst=: burst is missing: it is a whole number, 1 or more (character 13)`},
		{"10/1m,burst=0", `10/1m,burst=0: burst must be 1 or more, not 0 (character 13)`},
		{"10/1m,burst=x", `10/1m,burst=x: burst is not a whole number: unexpected "x" (character 13)`},
		{"10/1m,burst=1=2", `10/1m,burst=1=2: burst is not a whole number: unexpected "=" (character 14)`},
		{"10/1m,burst=1,burst=2", `10/1m,burst=1,burst=2: burst is given twice (character 15)`},
		{"10/1m,brst=1", `10/1m,brst=1: unknown option "brst", use burst (character 7)`},
		{"10/1m,queue=1", `10/1m,queue=1: queue is an option of leaky (character 7)`},
		{"10/1m,tz=UTC", `10/1m,tz=UTC: tz is an option of fixed with day, week, month or year (character 7)`},
		{"fixed:10/1d,hour=3", `fixed:10/1d,hour=3: hour is an option of fixed with day, week, month or year (character 13)`},
		{"fixed:10/day,start=mon", `fixed:10/day,start=mon: start is an option of fixed with week (character 14)`},
		{"leaky:1/1s,burst=2", `leaky:1/1s,burst=2: burst is an option of gcra and token (character 12)`},
		{"leaky:1/1s,x=2", `leaky:1/1s,x=2: unknown option "x", use queue (character 12)`},
		{"leaky:1/1s,queue=", `leaky:1/1s,queue=: queue is missing: it is a whole number, 0 or more (character 18)`},
		{"log:1/1s,x=2", `log:1/1s,x=2: unknown option "x", there is none here (character 10)`},
		{"fixed:1/day,x=2", `fixed:1/day,x=2: unknown option "x", use tz, hour (character 13)`},
		{"fixed:1/week,x=2", `fixed:1/week,x=2: unknown option "x", use tz, start, hour (character 14)`},
		{"fixed:1/day,hour=24", `fixed:1/day,hour=24: hour must be 0 to 23, not 24 (character 18)`},
		{"fixed:1/day,hour=", `fixed:1/day,hour=: hour is missing: it is a whole number, 0 or more (character 18)`},
		{"fixed:1/day,hour=9,hour=9", `fixed:1/day,hour=9,hour=9: hour is given twice (character 20)`},
		{"fixed:1/week,start=monday", `fixed:1/week,start=monday: unknown day "monday", use mon, tue, wed, thu, fri, sat, sun (character 20)`},
		{"fixed:1/week,start=", `fixed:1/week,start=: unknown day "", use mon, tue, wed, thu, fri, sat, sun (character 20)`},
		{"fixed:1/day,tz=", `fixed:1/day,tz=: unknown time zone "", use a name like UTC or Asia/Dhaka (character 16)`},
		{"fixed:1/day,tz=Local", `fixed:1/day,tz=Local: unknown time zone "Local", use a name like UTC or Asia/Dhaka (character 16)`},
		{"fixed:1/day,tz=localtime", `fixed:1/day,tz=localtime: unknown time zone "localtime", use a name like UTC or Asia/Dhaka (character 16)`},
		{"fixed:1/day,tz=Asia", `fixed:1/day,tz=Asia: unknown time zone "Asia", use a name like UTC or Asia/Dhaka (character 16)`},
		{"fixed:1/day,tz=../UTC", `fixed:1/day,tz=../UTC: unknown time zone "../UTC", use a name like UTC or Asia/Dhaka (character 16)`},
		{"fixed:1/day,tz=/etc/passwd", `fixed:1/day,tz=/etc/passwd: unknown time zone "/etc/passwd", use a name like UTC or Asia/Dhaka (character 16)`},
		{"fixed:1/day,tz=" + strings.Repeat("x", 65), "fixed:1/day,tz=" + strings.Repeat("x", 65) + `: unknown time zone "` + strings.Repeat("x", 65) + `", use a name like UTC or Asia/Dhaka (character 16)`},
		{"1/1h,burst=2000000000", `1/1h,burst=2000000000: burst is too large: at 3600000000000 ns for one unit, it stands for more than 2^62 ns (146 years) (character 12)`},
		{"1000000000/1s,burst=4611686018427387905", `1000000000/1s,burst=4611686018427387905: burst is too large: at 1 ns for one unit, it stands for more than 2^62 ns (146 years) (character 21)`},
		{"3/4611686018427ms", ""}, // rounded up, three units still fit
		{"4611686018427000001/4611686018427ms", `4611686018427000001/4611686018427ms: more than 10^9 per second: 4611686018427000001 in 4611686018427000000 ns (character 1)`},
		{"4611686018426999999/4611686018427ms", `4611686018426999999/4611686018427ms: limit is too large: at 2 ns for one unit, it stands for more than 2^62 ns (146 years) (character 1)`},
		{"leaky:1000000000/1s,queue=9223372036854775807", `leaky:1000000000/1s,queue=9223372036854775807: queue is too large: at 1 ns for one unit, it stands for more than 2^62 ns (146 years) (character 27)`},
		{"leaky:1000000000/1s,queue=4611686018427387904", `leaky:1000000000/1s,queue=4611686018427387904: queue is too large: at 1 ns for one unit, it stands for more than 2^62 ns (146 years) (character 27)`},
		{"10\n/1m", `"10\n/1m": limit is not a whole number: unexpected "\n" (character 3)`},
		{"10\xff/1m", `"10\xff/1m": limit is not a whole number: unexpected "�" (character 3)`},
		{long, long[:128] + "...: a limit has at most 128 characters (character 129)"},
	} {
		l, err := algo.Parse(c.text)
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q is read as %+v, want: %s", c.text, l, c.want)
			continue
		}
		var e *algo.ExprError
		if !errors.As(err, &e) || e.Expr != c.text || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
		if l.Algorithm != 0 || l.Burst != 0 {
			t.Errorf("%q: an error and a limit, %+v", c.text, l)
		}
	}
}

func TestNames(t *testing.T) {
	for a, want := range []string{"unknown", "throttle", "gcra", "token", "leaky", "fixed", "sliding", "log", "unknown"} {
		if got := algo.Algorithm(a).Name(); got != want {
			t.Errorf("algorithm %d is %s, want %s", a, got, want)
		}
	}
	l := mustThrottle(t, 15, 30, 60)
	if got := l.String(); got != "throttle of 16, one per 2000000000 ns" || l.Period() != "" {
		t.Errorf("CL.THROTTLE's limit is %q", got)
	}
}
