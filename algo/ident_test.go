package algo_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"limitd/algo"
)

// Two limits are the same record if and only if they have the same algorithm and the
// same period or calendar, whatever their numbers are.
func TestIdentIsAlgorithmAndPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawShape(t, algorithms...), drawShape(t, algorithms...)
		switch rapid.IntRange(0, 3).Draw(t, "alike but for") {
		case 0:
			b = a
		case 1:
			b = a
			b.hour = rapid.IntRange(0, 23).Draw(t, "hour")
		case 2:
			b = a
			b.zone = rapid.SampledFrom(zones).Draw(t, "zone")
		case 3:
			b.period = min(a.period, (1<<61)/1_000_000)
		}
		if a.unit == "" {
			a.zone, a.hour = "", 0
		}
		if b.unit == "" {
			b.zone, b.hour = "", 0
			if b.period == 0 {
				b.period = 1
			}
		} else {
			b.period = 0
		}
		l, m := mustParseExpr(t, a.expr(a.drawNumbers(t))), mustParseExpr(t, b.expr(b.drawNumbers(t)))
		if same := bytes.Equal(l.Ident(), m.Ident()); same != (a == b) {
			t.Fatalf("%s and %s: the same record: %v", l, m, same)
		}
		if n := len(l.Ident()); n < 2 || n > 255 {
			t.Fatalf("%s: an identity of %d bytes", l, n)
		}
		checkIdentity(t, a, l)
	})
}

func checkIdentity(t *rapid.T, s shape, l algo.Limit) {
	id, err := algo.ReadIdent(l.Ident())
	if err != nil {
		t.Fatalf("%s: %v", l, err)
	}
	start := ""
	if s.unit == "week" && s.start != 1 {
		start = strings.ToLower(s.start.String()[:3])
	}
	if id.Algorithm.Name() != s.algorithm || id.Period != l.Period() || id.Zone != s.zone || id.Hour != s.hour || id.Start != start {
		t.Fatalf("%s reads as %+v", l, id)
	}
}

// The layout is on disk.
func TestIdentLayout(t *testing.T) {
	for _, c := range []struct{ limit, hex string }{
		{"10/1ms", "02c0843d"},
		{"token:10/1ms", "03c0843d"},
		{"leaky:10/1ms", "04c0843d"},
		{"fixed:10/1ms", "05c0843d"},
		{"sliding:10/1ms", "06c0843d"},
		{"log:10/1ms", "07c0843d"},
		{"log:99/1ms", "07c0843d"},
		{"10/1m,burst=3", "0280b09dc2df01"},
		{"fixed:1/day", "0500010100" + fmt.Sprintf("%x", "UTC")},
		{"fixed:1/week,start=sun,hour=23,tz=Asia/Dhaka", "0500020017" + fmt.Sprintf("%x", "Asia/Dhaka")},
		{"fixed:1/month,hour=1", "0500030101" + fmt.Sprintf("%x", "UTC")},
		{"fixed:1/year", "0500040100" + fmt.Sprintf("%x", "UTC")},
	} {
		if got := fmt.Sprintf("%x", mustParse(t, c.limit).Ident()); got != c.hex {
			t.Errorf("%s: %s, want %s", c.limit, got, c.hex)
		}
	}
	id, err := algo.ReadIdent([]byte{1})
	if err != nil || id != (algo.Identity{Algorithm: algo.Throttle}) {
		t.Errorf("CL.THROTTLE's: %+v, %v", id, err)
	}
}

func TestReadIdentRefusesWhatIdentCannotHaveReturned(t *testing.T) {
	for _, bad := range []string{
		"", "\x00", "\x08\xc0\x84\x3d", "\x02", "\x02\x80", // no algorithm, no period, half of one
		"\x01\x00",                  // CL.THROTTLE has no more
		"\x02\x01",                  // a period of 1 ns
		"\x02\xc0\x84\xbd\x00",      // 1 ms in more bytes than it needs
		"\x02\xc0\x84\x3d\x00",      // something behind it
		"\x02\x00\x01\x01\x00UTC",   // a calendar, not of fixed
		"\x05\x00",                  // no calendar
		"\x05\x00\x01\x01\x00",      // no zone
		"\x05\x00\x00\x01\x00UTC",   // no such unit
		"\x05\x00\x05\x01\x00UTC",   //
		"\x05\x00\x02\x07\x00UTC",   // no such day
		"\x05\x00\x01\x01\x18UTC",   // no such hour
		"\x05\x00\x01\x02\x00UTC",   // a day does not start on a Tuesday
		"\x05\x00\x01\x01\x00U\x00", // no such name
		"\x05\x00\x01\x01\x00U,C",
		"\x05\x00\x01\x01\x00" + strings.Repeat("U", 65),
		"\x02" + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", // more than 64 bits
		"\x05" + "\x80\x80\x80\xa0\xc9\xbf\xb2\xc1\x40",     // more than 2^62 ns
		"\x07" + "\x80\xe0\xc4\xab\xdd\xac\xda\xe2\x20",     // more than 2^61 ns, of a counter
	} {
		if id, err := algo.ReadIdent([]byte(bad)); err == nil {
			t.Errorf("%q reads as %+v", bad, id)
		} else if want := fmt.Sprintf("record of unknown identity %x", bad); err.Error() != want {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
