package resp

import (
	"strings"
	"testing"

	"limitd/limiter"
)

func TestThrottleReply(t *testing.T) {
	s := newSession(t, Config{})
	for i, want := range []string{
		"*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:1800\r\n",
		"*5\r\n:0\r\n:3\r\n:1\r\n:-1\r\n:3600\r\n",
		"*5\r\n:0\r\n:3\r\n:0\r\n:-1\r\n:5400\r\n",
		"*5\r\n:1\r\n:3\r\n:0\r\n:1800\r\n:5400\r\n",
	} {
		if got := s.do("CL.THROTTLE", "user:42", "2", "2", "3600"); got != want {
			t.Fatalf("call %d: %q, want %q", i+1, got, want)
		}
	}
	// One ns less than a second to wait is still a second, and a second later it passes.
	s.limiter.now += 1799e9 + 1
	if got, want := s.do("cl.throttle", "user:42", "2", "2", "3600"), "*5\r\n:1\r\n:3\r\n:0\r\n:1\r\n:3601\r\n"; got != want {
		t.Errorf("just before: %q, want %q", got, want)
	}
	s.limiter.now += 1e9
	if got, want := s.do("Rl.Throttle", "user:42", "2", "2", "3600"), "*5\r\n:0\r\n:3\r\n:0\r\n:-1\r\n:5400\r\n"; got != want {
		t.Errorf("after the wait: %q, want %q", got, want)
	}
	if got, want := s.do("CL.THROTTLE", "user:42", "2", "2", "3600", "4"), "*5\r\n:1\r\n:3\r\n:0\r\n:-1\r\n:5400\r\n"; got != want {
		t.Errorf("more than fits ever: %q, want %q", got, want)
	}
	if got, want := s.do("CL.THROTTLE", "user:42", "2", "2", "3600", "-2"), "*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:1800\r\n"; got != want {
		t.Errorf("refund: %q, want %q", got, want)
	}
}

// The limit of the call before must not be taken for another's.
func TestThrottleMemo(t *testing.T) {
	s := newSession(t, Config{})
	for _, c := range []struct{ burst, count, period, want string }{
		{"9", "1", "1", ":10\r\n"}, {"8", "1", "1", ":9\r\n"}, {"8", "0", "1", "Zero rates"}, {"8", "1", "1", ":9\r\n"}, {"9", "1", "1", ":10\r\n"},
	} {
		if got := s.do("CL.THROTTLE", "k"+c.burst, c.burst, c.count, c.period, "0"); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestThrottleRefusesMalformedArguments(t *testing.T) {
	const usage = "-ERR Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\r\n"
	long := strings.Repeat("k", 1025)
	for _, c := range []struct {
		args string // blank separated, ~ for an empty one
		want string // contained in the error
	}{
		{"", usage},
		{"k", usage},
		{"k 1 1", usage},
		{"k 1 1 1 1 1", usage},
		{"k x 1 1", "-ERR max_burst: Couldn't parse as integer: x\r\n"},
		{"k 1 x y", "-ERR count: Couldn't parse as integer: x\r\n"},
		{"k 1 1 60s", "-ERR period: Couldn't parse as integer: 60s\r\n"},
		{"k 1 1 1 x", "-ERR quantity: Couldn't parse as integer: x\r\n"},
		{"k ~ 1 1", "-ERR max_burst: Couldn't parse as integer: \r\n"},
		{"k + 1 1", "Couldn't parse as integer: +"},
		{"k - 1 1", "Couldn't parse as integer: -"},
		{"k 1.0 1 1", "Couldn't parse as integer: 1.0"},
		{"k 1e3 1 1", "Couldn't parse as integer: 1e3"},
		{"k 0x10 1 1", "Couldn't parse as integer: 0x10"},
		{"k +-1 1 1", "Couldn't parse as integer: +-1"},
		{"k 1_000 1 1", "Couldn't parse as integer: 1_000"},
		{"k 1\u00a0 1 1", "Couldn't parse as integer"},
		{"k ١ 1 1", "Couldn't parse as integer"},
		{"k 9223372036854775808 1 1", "max_burst: Couldn't parse as integer: 9223372036854775808"},
		{"k -9223372036854775809 1 1", "max_burst: Couldn't parse as integer"},
		{"k 99999999999999999999999999 1 1", "max_burst: Couldn't parse as integer"},
		{"k 1\r\n+OK 1 1", "-ERR max_burst: Couldn't parse as integer: 1  +OK\r\n"},
		{"k " + strings.Repeat("9", 300) + " 1 1", "integer: " + strings.Repeat("9", 128) + "\r\n"},
		{"k -1 1 1", "max_burst"},
		{"k 1 0 1", "Zero rates are not supported"},
		{"k 1 1 0", "Zero rates are not supported"},
		{"k 1 -1 1", "count"},
		{"k 1 1 -1", "period"},
		{"k 1 -1 -1", "count"},
		{"k 1 1000000001 1", "Zero rates are not supported"},
		{"k 9223372036854775807 1 1", "max_burst"},
		{"k 1 1 9223372036854775807", "period"},
		{"k 1 1 1 9223372036854775807", "quantity"},
		{"k 1 1 1 -9223372036854775808", "quantity"},
		{long + " 1 1 1", "-ERR key is too long: 1025 bytes are more than limits.max_key = 1024\r\n"},
	} {
		s := newSession(t, Config{})
		args := []string{"CL.THROTTLE"}
		for f := range strings.FieldsFuncSeq(c.args, func(r rune) bool { return r == ' ' }) {
			args = append(args, strings.ReplaceAll(f, "~", ""))
		}
		got := s.do(args...)
		if !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, c.want) || strings.Count(got, "\r\n") != 1 {
			t.Errorf("%.60q: %q, want %q in it", c.args, got, c.want)
		}
		if n := len(s.limiter.chunks()); n > 0 {
			t.Errorf("%.60q: reached the limiter", c.args)
		}
		if got := s.do("PING"); got != "+PONG\r\n" {
			t.Errorf("%.60q: afterwards PING answers %q", c.args, got)
		}
	}
}

func TestThrottleTakesWhatRedisCellTakes(t *testing.T) {
	for _, args := range [][]string{
		{"", "1", "1", "1"},
		{"\x00\xff\r\n ", "1", "1", "1"},
		{strings.Repeat("k", 1024), "1", "1", "1"},
		{"k", "+1", "1", "1"},
		{"k", "0001", "00000000000000000000000000000001", "1"},
		{"k", "1", "1", "1", "-0"},
	} {
		s := newSession(t, Config{})
		if got := s.do(append([]string{"CL.THROTTLE"}, args...)...); !strings.HasPrefix(got, "*5\r\n:0\r\n:2\r\n") {
			t.Errorf("%q: %q", args, got)
		}
	}
}

// Each way of not deciding is told apart, and none of them looks like a denial.
func TestThrottleTellsWhyThereIsNoAnswer(t *testing.T) {
	for st, code := range map[limiter.Status]string{
		limiter.TryAgain: "-TRYAGAIN ", limiter.InDoubt: "-INDOUBT ", limiter.ClusterDown: "-CLUSTERDOWN ",
		limiter.Busy: "-BUSY ", limiter.OOM: "-OOM ", limiter.Loading: "-LOADING ",
	} {
		s := newSession(t, Config{})
		s.limiter.status["k"] = st
		if got := s.do("CL.THROTTLE", "k", "1", "1", "1"); !strings.HasPrefix(got, code) || !strings.HasSuffix(got, "\r\n") {
			t.Errorf("%d: %q, want %q", st, got, code)
		}
	}
}

func TestParseInt(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "+7": 7, "007": 7, "-12": -12, "999999999999999999": 999999999999999999,
		"9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63, "+9223372036854775807": 1<<63 - 1,
		"0000000000000000000000009": 9,
	} {
		if got, ok := parseInt([]byte(in)); !ok || got != want {
			t.Errorf("%q: %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "+", "-", "--1", "1 ", " 1", "1.", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "92233720368547758070", "a"} {
		if got, ok := parseInt([]byte(in)); ok {
			t.Errorf("%q: %d, want none", in, got)
		}
	}
}
