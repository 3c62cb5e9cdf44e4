package model

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"limitd/algo/model"
)

// second is another model of the same rules, that keeps all that was ever admitted.
func second(l Limit) func(now, cost int64) model.Answer {
	b := big.NewInt
	var bucket model.Bucket
	var queue model.Queue
	var fixed model.Fixed
	windows := windowsOf(l)
	var sliding model.Sliding
	var log model.Log
	return func(now, cost int64) model.Answer {
		switch l.Algorithm {
		case Leaky:
			return queue.Take(b(now), b(l.Interval), b(l.Burst), b(cost))
		case Fixed:
			return fixed.Take(b(now), windows, b(l.Burst), b(cost))
		case Sliding:
			return sliding.Take(b(now), b(l.Period), b(l.Burst), b(cost))
		case Log:
			return log.Take(b(now), b(l.Period), b(l.Burst), b(cost))
		}
		return bucket.Take(b(now), b(l.Interval), b(l.Burst), b(cost))
	}
}

// windowsOf a limit, by the other model.
func windowsOf(l Limit) model.Windows {
	c := l.Calendar
	if c.Unit == 0 {
		return model.Every{Length: big.NewInt(l.Period)}
	}
	loc, err := time.LoadLocation(c.Zone)
	if err != nil {
		panic(err)
	}
	return &model.Calendar{Unit: calendarUnits[c.Unit], Zone: loc, Start: time.Weekday(c.First), Hour: int(c.Hour)}
}

// Two models that were written apart say the same.
func TestAnotherModelSaysTheSame(t *testing.T) {
	for _, text := range []string{"7/10ms", "token:3/10ms,burst=5", "leaky:3/10ms,queue=4", "leaky:1/5ms", "fixed:5/10ms", "sliding:7/10ms", "sliding:1/3ms", "log:5/10ms",
		"fixed:5/day", "fixed:3/day,tz=America/New_York,hour=2", "fixed:3/day,tz=Australia/Lord_Howe", "fixed:4/week,start=sun,tz=Asia/Kathmandu,hour=5", "fixed:5/month,tz=Africa/Casablanca", "fixed:2/year,hour=23"} {
		l, err := ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		seeds := uint64(30)
		if l.Calendar.Unit > 0 { // the other model looks at clocks for a long time
			seeds = 6
		}
		for seed := range seeds {
			r := rand.New(rand.NewPCG(seed, 9))
			other := second(l)
			var s State
			now := int64(1_800_000_000_000_000_000) + r.Int64N(1e9)
			if l.Calendar.Unit > 0 {
				now += r.Int64N(365 * 86400e9)
			}
			for i := range 60 {
				now += []int64{0, r.Int64N(3e6), r.Int64N(12e6), l.end(now) - now - r.Int64N(2), l.end(now) - l.start(now)}[r.IntN(5)]
				cost := r.Int64N(l.Burst+3) - 2
				var a Answer
				a, s = l.Take(s, now, cost)
				w := other(now, cost)
				want := Answer{Allowed: w.Allowed, Remaining: w.Remaining.Int64(), Retry: Never, Reset: w.Reset.Int64()}
				if w.Wait != nil {
					want.Retry = w.Wait.Int64()
				}
				if w.Delay != nil && cost >= 0 {
					want.Delay = w.Delay.Int64()
				}
				if a != want {
					t.Fatalf("%s, seed %d, call %d of %d at %d: %+v, the other %+v", text, seed, i, cost, now, a, want)
				}
			}
		}
	}
}

func TestLimitsAreRead(t *testing.T) {
	for text, want := range map[string]Limit{
		"10/1m":                {Identity{Algorithm: GCRA, Period: 60e9}, 10, 6e9},
		"gcra:3/1s,burst=16":   {Identity{Algorithm: GCRA, Period: 1e9}, 16, 333_333_334},
		"token:7/1m30s":        {Identity{Algorithm: Token, Period: 90e9}, 7, 12_857_142_858},
		"leaky:10/1s,queue=50": {Identity{Algorithm: Leaky, Period: 1e9}, 51, 1e8},
		"fixed:5/1500ms":       {Identity{Algorithm: Fixed, Period: 15e8}, 5, 0},
		"sliding:1/2w":         {Identity{Algorithm: Sliding, Period: 14 * 86400e9}, 1, 0},
		"log:3/10m":            {Identity{Algorithm: Log, Period: 600e9}, 3, 0},
		"fixed:4/month":        {Identity{Algorithm: Fixed, Calendar: Calendar{3, 1, 0, "UTC"}}, 4, 0},
		"fixed:4/week,start=sat,hour=6,tz=Asia/Dhaka": {Identity{Algorithm: Fixed, Calendar: Calendar{2, 6, 6, "Asia/Dhaka"}}, 4, 0},
	} {
		if got, err := ParseLimit(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10", "10/", "0/1s", "x/1s", "10/1x", "10/s", "quick:1/1s", "log:1/day", "1/day", "fixed:1/day,start=mon", "fixed:1/week,start=0", "fixed:1/day,hour=24", "fixed:1/day,tz=Area/City", "fixed:1/day,burst=2", "fixed:1/fortnight", "log:1/1s,burst=2", "10/1s,queue=1", "10/1s,burst"} {
		if l, err := ParseLimit(text); err == nil {
			t.Errorf("%q is %+v", text, l)
		}
	}
	if id, err := ReadIdentity("0780e0a596bb11"); err != nil || id != (Identity{Algorithm: Log, Period: 600e9}) {
		t.Errorf("%+v, %v", id, err)
	}
	const ofWeek = "0500" + "020606" + "417369612f4468616b61" // Asia/Dhaka
	if id, err := ReadIdentity(ofWeek); err != nil || id != (Identity{Algorithm: Fixed, Calendar: Calendar{2, 6, 6, "Asia/Dhaka"}}) || hex.EncodeToString(id.bytes()) != ofWeek {
		t.Errorf("%+v, %v", id, err)
	}
	for _, text := range []string{"", "0101", "0700" + "010100" + "555443", "0500" + "050100" + "555443", "0500" + "010100", "0500" + "010100" + "5a", "02", "08e807", "07", "0700", "ff00", "zz"} {
		if id, err := ReadIdentity(text); err == nil {
			t.Errorf("%q is %+v", text, id)
		}
	}
}

// A state is read as it was written, and one that no charge makes is refused.
func TestStatesAreRead(t *testing.T) {
	words := func(n ...int64) (b []byte) {
		for _, v := range n {
			for i := range 8 {
				b = append(b, byte(v>>(8*i)))
			}
		}
		return b
	}
	for _, c := range []struct {
		id     Identity
		b      []byte
		expiry int64
		text   string
	}{
		{Identity{Algorithm: GCRA, Period: 10}, words(105), 105, "tat 105"},
		{Identity{Algorithm: Fixed, Period: 10}, words(110, 3), 110, "[{110 3}]"},
		{Identity{Algorithm: Sliding, Period: 10}, words(100, 3, 2), 120, "[{90 2} {100 3}]"},
		{Identity{Algorithm: Sliding, Period: 10}, words(100, 0, 2), 110, "[{90 2}]"},
		{Identity{Algorithm: Log, Period: 10}, words(101, 1, 101, 2, 104, 1), 114, "[{101 3} {104 1}]"},
		{Identity{Algorithm: GCRA, Period: 10}, words(105), 106, ""},
		{Identity{Algorithm: GCRA, Period: 10}, words(105, 1), 105, ""},
		{Identity{Algorithm: Fixed, Period: 10}, words(111, 3), 111, ""},
		{Identity{Algorithm: Fixed, Period: 10}, words(110, -3), 110, ""},
		{Identity{Algorithm: Sliding, Period: 10}, words(100, 3, 2), 110, ""},
		{Identity{Algorithm: Log, Period: 10}, words(104, 1, 101, 2), 111, ""},
		{Identity{Algorithm: Log, Period: 10}, words(104), 114, ""},
		{Identity{Algorithm: Log, Period: 10}, []byte{1}, 114, ""},
	} {
		s, err := c.id.Decode(c.b, c.expiry)
		if got := c.id.Text(s, 100); c.text == "" && err == nil || c.text != "" && (err != nil || got != c.text) {
			t.Errorf("%+v, %v, expiry %d: %s, %v, want %q", c.id, c.b, c.expiry, got, err, c.text)
		}
	}
}

func ExampleLimit_Refund() {
	l, _ := ParseLimit("log:9/10ms")
	var s State
	for _, at := range []int64{1e6, 2e6, 3e6} {
		_, s = l.Take(s, at, 2)
	}
	_, s = l.Refund(s, 4e6, 1, 2e6)
	fmt.Println(l.Text(s, 4e6))
	_, s = l.Take(s, 4e6, -3)
	fmt.Println(l.Text(s, 4e6))
	// Output:
	// [{1000000 2} {2000000 1} {3000000 2}]
	// [{1000000 2}]
}
