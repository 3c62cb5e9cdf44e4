package main

import (
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func readTrace(text string) (calls []traceCall, err error) {
	t := newTraceReader("calls.csv", strings.NewReader(text))
	for {
		c, err := t.next()
		if err == io.EOF {
			return calls, nil
		}
		if err != nil {
			return calls, err
		}
		calls = append(calls, c)
	}
}

func TestTraceIsReadToTheNanosecond(t *testing.T) {
	calls, err := readTrace("\ufeffTime,Cost\r\n\n" +
		"0\n0.000000001,0\r\n 0.1 , -7 \n00.10,\n\"1.5\",\"2305843009213693952\"\n" +
		"4102444800.999999999\n2100-01-01T05:30:01.123456789+05:30,3\n2100-01-01T00:00:02Z")
	if err != nil {
		t.Fatal(err)
	}
	type short struct {
		line     int
		at, cost int64
	}
	var got []short
	for _, c := range calls {
		got = append(got, short{c.line, c.at, c.cost})
	}
	want := []short{
		{3, 0, 1}, {4, 1, 0}, {5, 1e8, -7}, {6, 1e8, 1}, {7, 15e8, 1 << 61},
		{8, 4102444800999999999, 1}, {9, 4102444801123456789, 3}, {10, 4102444802e9, 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestBadTracesAreRefusedWithTheirLine(t *testing.T) {
	const format = "neither seconds like 12.5 nor a time of RFC 3339"
	for _, tc := range []struct{ text, want string }{
		{"1\n2\n1.999999999", `calls.csv:3: time 1.999999999 is before the one of line 2, 2; a trace goes forward`},
		{"2026-01-01T00:00:01Z\n2026-01-01T00:00:01+01:00", "calls.csv:2: time 2026-01-01T00:00:01+01:00 is before"},
		{"1,2,3", "calls.csv:1: 3 fields"},
		{"time,cost\n,1", "calls.csv:2: time \"\" is missing"},
		{"-1", format},
		{"+1", format},
		{".5", format},
		{"5.", format},
		{"1e3", format},
		{"1 2", format},
		{"1.2.3", format},
		{"0x10", format},
		{"1;2", format},
		{"١", format},
		{"\x00", format},
		{"NaN1", format},
		{"time\ncost", "calls.csv:2: time \"cost\" is " + format},
		{"now,1", "calls.csv:1: time \"now\" is " + format}, // no header: a cost is no name
		{"1.0000000001", "finer than a nanosecond"},
		{"2026-01-01T00:00:00.0000000001Z", "finer than a nanosecond"},
		{"4611686019", "out of range: from 1970 to 2116"},
		{"99999999999999999999999", "out of range: from 1970 to 2116"},
		{"1969-12-31T23:59:59Z", "out of range: from 1970 to 2116"},
		{"9999-12-31T23:59:59Z", "out of range: from 1970 to 2116"},
		{"2026-02-29T00:00:00Z", "not a time of RFC 3339"},
		{"2026-01-01T00:00:00", "not a time of RFC 3339"}, // of which zone?
		{"2026-01-01 00:00:00Z", format},
		{"2026-01-01t00:00:00z", format},
		{"1,x", `calls.csv:1: cost "x" is not a whole number`},
		{"1,1.5", `cost "1.5" is not a whole number`},
		{"1,2305843009213693953", "out of range: at most 2^61"},
		{"1,-2305843009213693953", "out of range: at most 2^61"},
		{"1,99999999999999999999", "out of range: at most 2^61"},
		{"1\n" + strings.Repeat("2", 5000) + "\n3", "calls.csv:2: the line is longer than 1024 bytes"},
		{"1\n" + strings.Repeat(" ", maxTraceLine+3), "calls.csv:2: the line is longer than 1024 bytes"},
	} {
		if calls, err := readTrace(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, %v; want %s", tc.text, calls, err, tc.want)
		}
	}
}

func TestErrorsOfTheFileItselfAreKept(t *testing.T) {
	broken := errors.New("input/output error")
	r := newTraceReader("calls.csv", io.MultiReader(strings.NewReader("1\n2\n"), failing{broken}))
	for range 2 {
		if _, err := r.next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.next(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Whatever a file holds: calls that the limiters are made for, in order, or an error
// that names a line. What was read, written in the plainest way, is read as the same.
func FuzzTrace(f *testing.F) {
	for _, seed := range []string{
		"time,cost\n0,1\n0.5,-2\n", "2026-01-01T00:00:00Z,3\r\n2026-01-01T00:00:00.000000001Z", "1\n0", "\ufeff1,", "\"1\",\"\"", ",", "1,1,1",
		"4611686018.999999999,2305843009213693952",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		calls, err := readTrace(text)
		if err != nil && !strings.HasPrefix(err.Error(), "calls.csv:") {
			t.Fatalf("an error without a line: %v", err)
		}
		var plain strings.Builder
		last := int64(0)
		for _, c := range calls {
			if c.at < last || c.at > maxTime || c.cost > maxTraceCost || c.cost < -maxTraceCost {
				t.Fatalf("call %+v behind one at %d", c, last)
			}
			last = c.at
			plain.WriteString(seconds(c.at) + "," + strconv.FormatInt(c.cost, 10) + "\n")
		}
		again, err := readTrace(plain.String())
		if err != nil || len(again) != len(calls) {
			t.Fatalf("%q: %v", plain.String(), err)
		}
		for i, c := range calls {
			if again[i].at != c.at || again[i].cost != c.cost {
				t.Fatalf("%+v became %+v", c, again[i])
			}
		}
	})
}
