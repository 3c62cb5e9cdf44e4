package algo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"limitd/algo"
)

// keyed is a key with one limit, moved through time by hand.
type keyed struct {
	state  []byte
	expiry int64
}

func (k *keyed) call(l algo.Limit, now, offset, cost int64) algo.Verdict {
	state := k.state
	if k.expiry <= now {
		state = nil
	}
	v, e := l.Decide(state, now, offset, cost, nil)
	switch e.Op {
	case algo.Replace:
		k.state = append([]byte(nil), e.State...)
	case algo.Splice:
		kept := state[e.Drop : len(state)-e.Cut]
		k.state = append(append([]byte(nil), kept...), e.State...)
	default:
		return v
	}
	if k.expiry = e.Expiry; k.expiry <= now {
		k.state = nil
	}
	return v
}

func mustParse(t testing.TB, expr string) algo.Limit {
	t.Helper()
	l, err := algo.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each line is a time, how many calls of one unit (or one of several: 1x30), how many
// of them pass, and what is said of the last one.
func TestFigures(t *testing.T) {
	for _, c := range []struct {
		limit string
		from  string // clock time at which the lines' times begin
		lines string
	}{
		{"10/1m,burst=3", "", `
			0s   3  3 remaining=0
			0s   1  0
			3s   1  0 wait=3s
			6s   1  1`},
		{"20/1m,burst=4", "", "0s 6 4 wait=3s"},
		{"token:5/1s,burst=10", "", `
			0s     12  10
			400ms  1   1 remaining=1
			1s     5   4
			1.1s   1   0 wait=100ms
			1.3s   1   1`},
		{"token:2/1s,burst=20", "", "0s 25 20 wait=500ms"},
		{"token:10/1s,burst=50", "", `
			0s 60 50
			2s 30 20 wait=100ms`},
		{"leaky:10/1s,queue=50", "", `
			0s 1  1 delay=0s
			0s 1  1 delay=100ms
			0s 1  1 delay=200ms
			0s 48 48 delay=5s remaining=0
			0s 1  0 wait=100ms`},
		{"fixed:100/1m", "12:00:59", `
			0s 101 100 wait=1s
			1s 101 100 wait=1m`},
		{"log:100/1m", "12:00:59", `
			0s        101 100 wait=1m
			1s        1   0   wait=59s
			59.999s   1   0   wait=1ms
			60s       101 100`},
		{"sliding:100/1m", "", `
			0s  90 90
			75s 20 20 remaining=12
			75s 13 12`},
		{"sliding:100/1m", "", `
			0s  90 90
			90s 40 40 remaining=15`},
		{"sliding:100/1m", "", `
			0s  90  90
			65s 1x30 0`},
		{"sliding:100/1m", "", `
			0s  60  60
			78s 45  45 remaining=13`},
		{"sliding:200/1m", "", `
			0s  180 180
			84s 50  50 remaining=42`},
	} {
		t.Run(c.limit, func(t *testing.T) {
			l := mustParse(t, c.limit)
			var k keyed
			base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			if c.from != "" {
				at, err := time.Parse("15:04:05", c.from)
				if err != nil {
					t.Fatal(err)
				}
				base = base.Truncate(24 * time.Hour).Add(at.Sub(at.Truncate(24 * time.Hour)))
			}
			for _, line := range strings.Split(strings.TrimSpace(c.lines), "\n") {
				f := strings.Fields(line)
				after, err := time.ParseDuration(f[0])
				if err != nil {
					t.Fatal(err)
				}
				calls, cost := 1, int64(1)
				if n, err := fmt.Sscanf(f[1], "%dx%d", &calls, &cost); n == 0 {
					t.Fatal(err)
				}
				passed := 0
				var v algo.Verdict
				for range calls {
					if v = k.call(l, base.Add(after).UnixNano(), 0, cost); v.Allowed {
						passed++
					}
				}
				if fmt.Sprint(passed) != f[2] {
					t.Errorf("%s: %d of %d calls pass, want %s", line, passed, calls, f[2])
				}
				said := map[string]string{
					"wait": time.Duration(v.RetryAfter).String(), "delay": time.Duration(v.Delay).String(),
					"remaining": fmt.Sprint(v.Remaining),
				}
				for _, want := range f[3:] {
					name, value, _ := strings.Cut(want, "=")
					if d, err := time.ParseDuration(value); err == nil && name != "remaining" {
						value = d.String()
					}
					if said[name] != value {
						t.Errorf("%s: it says %v", line, said)
					}
				}
			}
		})
	}
}
