package model

import (
	"math/big"
	"testing"
	"time"
)

// one is a call by hand, and the answer that it must get: wait -1 is never.
type one struct {
	now, limit, cost              int64
	allowed                       bool
	remaining, wait, reset, delay int64
}

func byHand(t *testing.T, calls []one, take func(now, limit, cost *big.Int) Answer) {
	t.Helper()
	for i, c := range calls {
		got := take(big.NewInt(c.now), big.NewInt(c.limit), big.NewInt(c.cost))
		wait := int64(-1)
		if got.Wait != nil {
			wait = got.Wait.Int64()
		}
		if got.Allowed != c.allowed || got.Remaining.Int64() != c.remaining || wait != c.wait || got.Reset.Int64() != c.reset || got.Delay.Int64() != c.delay {
			t.Errorf("call %d: allowed %v remaining %v wait %v reset %v delay %v, want %+v", i, got.Allowed, got.Remaining, wait, got.Reset, got.Delay, c)
		}
	}
}

func TestQueueByHand(t *testing.T) {
	var q Queue // of units of 10 ns
	byHand(t, []one{
		{100, 3, 0, true, 3, 0, 0, 0},
		{100, 3, 1, true, 2, 0, 10, 0},  // served at once
		{100, 3, 1, true, 1, 0, 20, 10}, // behind it
		{100, 3, 4, false, 1, -1, 20, 0},
		{100, 3, 2, false, 1, 10, 20, 0},
		{105, 3, 1, true, 0, 0, 25, 15}, // 25 ns of the line are left, so one fits
		{105, 3, 1, false, 0, 5, 25, 0},
		{105, 2, 0, false, 0, 5, 25, 0}, // a shorter queue has more in it than it holds
		{105, 3, -1, true, 1, 0, 15, 0},
		{115, 3, 0, true, 2, 0, 5, 5},
		{115, 3, -1, true, 3, 0, 0, 0}, // no more than is there
		{115, 3, 3, true, 0, 0, 30, 0},
		{145, 3, 0, true, 3, 0, 0, 0},
	}, func(now, limit, cost *big.Int) Answer { return q.Take(now, big.NewInt(10), limit, cost) })
}

func TestLogByHand(t *testing.T) {
	var l Log // of 10 ns
	byHand(t, []one{
		{100, 3, 0, true, 3, 0, 0, 0},
		{100, 3, 1, true, 2, 0, 10, 0},
		{104, 3, 2, true, 0, 0, 10, 0},
		{104, 3, 4, false, 0, -1, 10, 0},
		{104, 3, 1, false, 0, 6, 10, 0},
		{104, 3, 2, false, 0, 10, 10, 0},
		{109, 3, 1, false, 0, 1, 5, 0},
		{110, 3, 1, true, 0, 0, 10, 0},
		{110, 3, -2, true, 2, 0, 4, 0}, // the newest, and half of the one before
		{114, 3, 3, true, 0, 0, 10, 0},
	}, func(now, limit, cost *big.Int) Answer { return l.Take(now, big.NewInt(10), limit, cost) })
}

func TestSlidingByHand(t *testing.T) {
	var s Sliding // of 10 ns
	byHand(t, []one{
		{100, 10, 0, true, 10, 0, 0, 0},
		{109, 10, 10, true, 0, 0, 11, 0}, // until 120
		{110, 10, 1, false, 0, 1, 10, 0}, // at 111 it counts for 9
		{113, 10, 4, false, 3, 1, 7, 0},  //
		{113, 10, 2, true, 1, 0, 17, 0},  // 7 + 2
		{113, 10, 11, false, 1, -1, 17, 0},
		{113, 1, 1, false, 0, 17, 17, 0}, // 2 of the window before count for nothing from 130 on
		{113, 1, 0, false, 0, 12, 17, 0}, // and for 1 from 125 on
		{113, 10, -3, true, 3, 0, 7, 0},  // 2 of this window, 1 of the one before: 9*7/10 are left
		{119, 10, 0, true, 9, 0, 1, 0},
		{120, 10, 0, true, 10, 0, 0, 0},
	}, func(now, limit, cost *big.Int) Answer {
		return s.Take(now, big.NewInt(10), limit, cost)
	})
}

func TestFixedByHand(t *testing.T) {
	var f Fixed // of 10 ns
	byHand(t, []one{
		{100, 3, 0, true, 3, 0, 0, 0},
		{109, 3, 2, true, 1, 0, 1, 0},
		{109, 3, 2, false, 1, 1, 1, 0},
		{109, 3, 4, false, 1, -1, 1, 0},
		{110, 3, 2, true, 1, 0, 10, 0},
		{105, 3, 2, false, 1, 15, 15, 0}, // the date went back, the window did not
		{119, 1, 0, false, 0, 1, 1, 0},
		{119, 3, -1, true, 2, 0, 1, 0},
		{119, 3, -9, true, 3, 0, 0, 0},
		{-1, 3, 1, true, 2, 0, 1, 0},
	}, func(now, limit, cost *big.Int) Answer { return f.Take(now, Every{big.NewInt(10)}, limit, cost) })
}

func TestCalendarByHand(t *testing.T) {
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		calendar         Calendar
		at, start, until string
	}{
		{Calendar{Unit: "day"}, "2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"},
		{Calendar{Unit: "day", Hour: 1}, "2026-10-25T12:00:00Z", "2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"},
		{Calendar{Unit: "week", Start: time.Sunday}, "2026-03-28T23:59:59Z", "2026-03-22T00:00:00Z", "2026-03-29T00:00:00Z"},
		{Calendar{Unit: "month"}, "2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{Calendar{Unit: "year", Hour: 9}, "2024-01-01T08:59:59Z", "2023-01-01T09:00:00Z", "2024-01-01T09:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		c.calendar.Zone = zone
		start, end := c.calendar.Window(at)
		if s, e := start.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339); s != c.start || e != c.until {
			t.Errorf("%s of %s is %s to %s, want %s to %s", c.calendar.Unit, c.at, s, e, c.start, c.until)
		}
	}
}
