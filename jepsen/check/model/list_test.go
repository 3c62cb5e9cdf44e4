package model

import (
	"fmt"
	"testing"
	"time"

	"limitd/trace"
)

// A day that has no midnight, one that has two, and windows that turn over together.
func TestCalendarWindowsByHand(t *testing.T) {
	for _, c := range []struct{ limit, at, start, end string }{
		{"fixed:1/day", "2028-12-31T23:59:59.999999999Z", "2028-12-31T00:00:00Z", "2029-01-01T00:00:00Z"},
		{"fixed:1/week", "2028-12-31T23:59:59.999999999Z", "2028-12-25T00:00:00Z", "2029-01-01T00:00:00Z"},
		{"fixed:1/year", "2029-01-01T00:00:00Z", "2029-01-01T00:00:00Z", "2030-01-01T00:00:00Z"},
		{"fixed:1/day,tz=Asia/Dhaka,hour=6", "2028-12-31T23:59:59Z", "2028-12-31T00:00:00Z", "2029-01-01T00:00:00Z"},
		{"fixed:1/week,start=sun", "2000-01-01T12:00:00Z", "1999-12-26T00:00:00Z", "2000-01-02T00:00:00Z"},
		{"fixed:1/month,hour=3", "2027-03-01T02:00:00Z", "2027-02-01T03:00:00Z", "2027-03-01T03:00:00Z"},
		// Clocks go from 2 to 3 on March 14th, and from 2 to 1 on November 7th.
		{"fixed:1/day,tz=America/New_York,hour=2", "2027-03-14T07:30:00Z", "2027-03-14T07:00:00Z", "2027-03-15T06:00:00Z"},
		{"fixed:1/day,tz=America/New_York,hour=1", "2027-11-07T06:30:00Z", "2027-11-07T05:00:00Z", "2027-11-08T06:00:00Z"},
		// In Beirut they go from 24 to 1, so this day begins at 1.
		{"fixed:1/day,tz=Asia/Beirut", "2021-03-28T00:00:00Z", "2021-03-27T22:00:00Z", "2021-03-28T21:00:00Z"},
	} {
		l, err := ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		ns := func(s string) int64 {
			at, err := time.Parse(time.RFC3339Nano, s)
			if err != nil {
				t.Fatal(err)
			}
			return at.UnixNano()
		}
		if start, end := l.Window(ns(c.at)); start != ns(c.start) || end != ns(c.end) {
			t.Errorf("%s at %s: from %s to %s, want %s to %s", c.limit, c.at, time.Unix(0, start).UTC(), time.Unix(0, end).UTC(), c.start, c.end)
		}
	}
}

func ExampleDecide_list() {
	m := memory{map[Record]State{}, map[ID]*Charge{}}
	begin := time.Date(2028, 12, 31, 23, 59, 0, 0, time.UTC).UnixNano()
	for i, limit := range []string{"sliding:9/1m", "fixed:9/week,start=sun,hour=5", "fixed:9/day", "fixed:9/2m", "log:9/1m", "10/1m"} {
		l, _ := ParseLimit(limit)
		_, m.states[Record{0, "k", l.Identity}] = l.Take(State{}, begin, int64(1+i))
	}
	m.states[Record{0, "k", ofThrottle}] = At(begin + 70e9)
	for _, now := range []int64{begin, begin + 60e9, begin + 90e9} {
		d, _ := Decide(&trace.Call{Op: "list", Key: "k"}, now, 100, m)
		for _, l := range d.List {
			fmt.Println(l.Kind, l.Used, time.Duration(l.Left))
		}
		fmt.Println()
	}
	// Output:
	// algorithm 1, period 0 ns 70000000000 1m10s
	// algorithm 2, period 60000000000 ns 36000000000 36s
	// algorithm 5, period day 3 1m0s
	// algorithm 5, period week,start=sun,hour=5 2 149h1m0s
	// algorithm 5, period 120000000000 ns 4 1m0s
	// algorithm 6, period 60000000000 ns 1 2m0s
	// algorithm 7, period 60000000000 ns 5 1m0s
	//
	// algorithm 1, period 0 ns 10000000000 10s
	// algorithm 5, period week,start=sun,hour=5 2 149h0m0s
	// algorithm 6, period 60000000000 ns 1 1m0s
	//
	// algorithm 5, period week,start=sun,hour=5 2 148h59m30s
	// algorithm 6, period 60000000000 ns 1 30s
}

func TestAListIsOfSomeStates(t *testing.T) {
	kind, _ := KindOf("log", "1m")
	day, _ := KindOf("fixed", "day,tz=Asia/Dhaka")
	states := func(id Identity) []State {
		if id != kind {
			return []State{{}}
		}
		return []State{{}, {kept: []kept{{1, 3}}}}
	}
	for i, c := range []struct {
		list []Listed
		now  int64
		want bool
	}{
		{nil, 2, true},
		{[]Listed{{kind, 3, 59e9 + 999_999_999}}, 2, true},
		{[]Listed{{kind, 2, 59e9 + 999_999_999}}, 2, false},
		{[]Listed{{kind, 3, 59e9}}, 2, false},
		{[]Listed{{day, 1, 5}}, 2, false},
		{[]Listed{{kind, 3, 59e9 + 999_999_999}, {kind, 3, 59e9 + 999_999_999}}, 2, false},
		{[]Listed{{kind, 3, 0}}, 60e9 + 1, false},
	} {
		if got := ListedOf(c.list, []Identity{kind, day}, c.now, 1, states); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
	if !ListedOf([]Listed{{kind, 3, 60_000}}, []Identity{kind}, 2, 1e6, states) {
		t.Error("59.999999999 s are not 60000 ms")
	}
}
