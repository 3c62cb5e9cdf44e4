package algo_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// windowOf is the calendar window of a date, in the clocks of the limit's zone.
func windowOf(t *testing.T, expr, at string, zone *time.Location) (start, end time.Time) {
	t.Helper()
	date, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	s, e, ok := mustParse(t, expr).CalendarWindow(date.UnixNano())
	if !ok || s > date.UnixNano() || e <= date.UnixNano() {
		t.Fatalf("%s at %s: window %d to %d, %v", expr, at, s, e, ok)
	}
	return time.Unix(0, s).In(zone), time.Unix(0, e).In(zone)
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// The window that an instant lies in, from and to as the clocks of the zone show it.
func TestCalendarWindows(t *testing.T) {
	for _, c := range []struct {
		limit, zone string
		at          string
		from, to    string
		hours       string
	}{
		// Plain ones.
		{"day", "UTC", "2026-03-01T00:00:00Z", "2026-03-01 00:00 +0000", "2026-03-02 00:00 +0000", "24h"},
		{"day", "UTC", "2026-02-28T23:59:59Z", "2026-02-28 00:00 +0000", "2026-03-01 00:00 +0000", "24h"},
		{"day", "UTC", "1970-01-01T00:00:00Z", "1970-01-01 00:00 +0000", "1970-01-02 00:00 +0000", "24h"},
		{"day", "UTC", "1969-12-31T23:59:59Z", "1969-12-31 00:00 +0000", "1970-01-01 00:00 +0000", "24h"},
		{"day", "UTC", "2099-12-31T23:59:59Z", "2099-12-31 00:00 +0000", "2100-01-01 00:00 +0000", "24h"},
		{"day,hour=9", "UTC", "2026-03-01T08:59:59Z", "2026-02-28 09:00 +0000", "2026-03-01 09:00 +0000", "24h"},
		{"day,hour=9", "UTC", "2026-03-01T09:00:00Z", "2026-03-01 09:00 +0000", "2026-03-02 09:00 +0000", "24h"},
		{"day", "Asia/Dhaka", "2026-03-01T17:59:59Z", "2026-03-01 00:00 +0600", "2026-03-02 00:00 +0600", "24h"},
		{"day", "Asia/Dhaka", "2026-03-01T18:00:00Z", "2026-03-02 00:00 +0600", "2026-03-03 00:00 +0600", "24h"},
		{"day", "Asia/Kathmandu", "2026-03-01T18:14:59Z", "2026-03-01 00:00 +0545", "2026-03-02 00:00 +0545", "24h"},
		{"day", "Asia/Kathmandu", "2026-03-01T18:15:00Z", "2026-03-02 00:00 +0545", "2026-03-03 00:00 +0545", "24h"},

		// Days of 23 and 25 hours, and of half an hour less and more.
		{"day", "America/New_York", "2026-03-08T12:00:00Z", "2026-03-08 00:00 -0500", "2026-03-09 00:00 -0400", "23h"},
		{"day", "America/New_York", "2026-11-01T12:00:00Z", "2026-11-01 00:00 -0400", "2026-11-02 00:00 -0500", "25h"},
		{"day", "Europe/London", "2026-03-29T12:00:00Z", "2026-03-29 00:00 +0000", "2026-03-30 00:00 +0100", "23h"},
		{"day", "Europe/London", "2026-10-25T12:00:00Z", "2026-10-25 00:00 +0100", "2026-10-26 00:00 +0000", "25h"},
		{"day", "Australia/Lord_Howe", "2026-10-03T20:00:00Z", "2026-10-04 00:00 +1030", "2026-10-05 00:00 +1100", "23h30m"},
		{"day", "Australia/Lord_Howe", "2026-04-05T00:00:00Z", "2026-04-05 00:00 +1100", "2026-04-06 00:00 +1030", "24h30m"},
		{"week", "America/New_York", "2026-03-08T12:00:00Z", "2026-03-02 00:00 -0500", "2026-03-09 00:00 -0400", "167h"},
		{"month", "Europe/London", "2026-10-25T12:00:00Z", "2026-10-01 00:00 +0100", "2026-11-01 00:00 +0000", "745h"},

		// Midnight is left out: the day begins when the clocks have changed, at 1.
		{"day", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04 01:00 -0200", "2018-11-05 00:00 -0200", "23h"},
		{"day", "America/Sao_Paulo", "2018-11-04T02:30:00Z", "2018-11-03 00:00 -0300", "2018-11-04 01:00 -0200", "24h"},
		{"day", "Africa/Cairo", "2026-04-24T12:00:00Z", "2026-04-24 01:00 +0300", "2026-04-25 00:00 +0300", "23h"},
		{"day", "Asia/Beirut", "2021-03-28T12:00:00Z", "2021-03-28 01:00 +0300", "2021-03-29 00:00 +0300", "23h"},
		{"day", "America/Havana", "2026-03-08T12:00:00Z", "2026-03-08 01:00 -0400", "2026-03-09 00:00 -0400", "23h"},
		// The hour before midnight is left out: 23:00 is 24:00.
		{"day", "Asia/Dhaka", "2009-06-19T16:00:00Z", "2009-06-19 00:00 +0600", "2009-06-20 00:00 +0700", "23h"},
		{"day,hour=23", "Asia/Dhaka", "2009-06-19T16:59:59Z", "2009-06-18 23:00 +0600", "2009-06-20 00:00 +0700", "24h"},
		{"day,hour=23", "Asia/Dhaka", "2009-06-19T17:00:00Z", "2009-06-20 00:00 +0700", "2009-06-20 23:00 +0700", "23h"},
		// The hour of the limit is left out, west and east of Greenwich.
		{"day,hour=2", "America/New_York", "2026-03-08T06:59:59Z", "2026-03-07 02:00 -0500", "2026-03-08 03:00 -0400", "24h"},
		{"day,hour=2", "America/New_York", "2026-03-08T07:00:00Z", "2026-03-08 03:00 -0400", "2026-03-09 02:00 -0400", "23h"},
		{"day,hour=1", "Europe/London", "2026-03-29T01:00:00Z", "2026-03-29 02:00 +0100", "2026-03-30 01:00 +0100", "23h"},
		{"day,hour=2", "Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-28 02:00 +0100", "2026-03-29 03:00 +0200", "24h"},
		{"day,hour=2", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", "2026-10-04 02:30 +1100", "2026-10-05 02:00 +1100", "23h30m"},
		{"week,start=sun,hour=2", "America/New_York", "2026-03-08T12:00:00Z", "2026-03-08 03:00 -0400", "2026-03-15 02:00 -0400", "167h"},

		// The hour of the limit comes twice: the first time counts.
		{"day,hour=1", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-01 01:00 -0400", "2026-11-02 01:00 -0500", "25h"},
		{"day,hour=1", "America/New_York", "2026-11-01T04:59:59Z", "2026-10-31 01:00 -0400", "2026-11-01 01:00 -0400", "24h"},
		{"day,hour=1", "America/New_York", "2026-11-01T06:30:00Z", "2026-11-01 01:00 -0400", "2026-11-02 01:00 -0500", "25h"},
		{"day,hour=1", "Europe/London", "2026-10-25T00:00:00Z", "2026-10-25 01:00 +0100", "2026-10-26 01:00 +0000", "25h"},
		{"day,hour=1", "Europe/London", "2026-10-24T23:59:59Z", "2026-10-24 01:00 +0100", "2026-10-25 01:00 +0100", "24h"},
		// Clocks that go back at midnight, so that it comes an hour later.
		{"day", "America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17 00:00 -0200", "2018-02-18 00:00 -0300", "25h"},
		// And a minute behind it: the first midnight counts, though the day before comes back.
		{"day", "America/St_Johns", "2010-11-07T02:45:00Z", "2010-11-07 00:00 -0230", "2010-11-08 00:00 -0330", "25h"},
		{"day", "America/St_Johns", "2010-11-07T02:29:59Z", "2010-11-06 00:00 -0230", "2010-11-07 00:00 -0230", "24h"},

		// Samoa left out the 30th of December 2011, a Friday.
		{"day", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29 00:00 -1000", "2011-12-31 00:00 +1400", "24h"},
		{"day", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31 00:00 +1400", "2012-01-01 00:00 +1400", "24h"},
		{"day,hour=12", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29 12:00 -1000", "2011-12-31 00:00 +1400", "12h"},
		{"day,hour=12", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31 00:00 +1400", "2011-12-31 12:00 +1400", "12h"},
		{"week,start=fri", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-23 00:00 -1000", "2011-12-31 00:00 +1400", "168h"},
		{"week,start=fri", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31 00:00 +1400", "2012-01-06 00:00 +1400", "144h"},
		{"month", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-01 00:00 -1000", "2012-01-01 00:00 +1400", "720h"},
		{"year", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-01-01 00:00 -1000", "2012-01-01 00:00 +1400", "8736h"},

		// Months and years.
		{"month", "UTC", "2026-01-31T23:59:59Z", "2026-01-01 00:00 +0000", "2026-02-01 00:00 +0000", "744h"},
		{"month", "UTC", "2026-02-28T23:59:59Z", "2026-02-01 00:00 +0000", "2026-03-01 00:00 +0000", "672h"},
		{"month", "UTC", "2028-02-29T23:59:59Z", "2028-02-01 00:00 +0000", "2028-03-01 00:00 +0000", "696h"},
		{"month", "UTC", "2000-02-29T12:00:00Z", "2000-02-01 00:00 +0000", "2000-03-01 00:00 +0000", "696h"},
		{"month", "UTC", "2100-02-28T12:00:00Z", "2100-02-01 00:00 +0000", "2100-03-01 00:00 +0000", "672h"},
		{"month", "UTC", "2026-04-30T23:59:59Z", "2026-04-01 00:00 +0000", "2026-05-01 00:00 +0000", "720h"},
		{"month", "UTC", "2026-12-31T23:59:59Z", "2026-12-01 00:00 +0000", "2027-01-01 00:00 +0000", "744h"},
		{"month,hour=6", "UTC", "2026-03-01T05:59:59Z", "2026-02-01 06:00 +0000", "2026-03-01 06:00 +0000", "672h"},
		{"month,hour=6", "UTC", "2026-01-01T05:59:59Z", "2025-12-01 06:00 +0000", "2026-01-01 06:00 +0000", "744h"},
		{"year", "UTC", "2028-12-31T23:59:59Z", "2028-01-01 00:00 +0000", "2029-01-01 00:00 +0000", "8784h"},
		{"year", "UTC", "2026-07-01T00:00:00Z", "2026-01-01 00:00 +0000", "2027-01-01 00:00 +0000", "8760h"},
		{"year,hour=23", "UTC", "2026-01-01T22:59:59Z", "2025-01-01 23:00 +0000", "2026-01-01 23:00 +0000", "8760h"},

		// Weeks start on any day; 2026-03-01 is a Sunday.
		{"week", "UTC", "2026-03-01T12:00:00Z", "2026-02-23 00:00 +0000", "2026-03-02 00:00 +0000", "168h"},
		{"week,start=mon", "UTC", "2026-03-01T12:00:00Z", "2026-02-23 00:00 +0000", "2026-03-02 00:00 +0000", "168h"},
		{"week,start=tue", "UTC", "2026-03-01T12:00:00Z", "2026-02-24 00:00 +0000", "2026-03-03 00:00 +0000", "168h"},
		{"week,start=wed", "UTC", "2026-03-01T12:00:00Z", "2026-02-25 00:00 +0000", "2026-03-04 00:00 +0000", "168h"},
		{"week,start=thu", "UTC", "2026-03-01T12:00:00Z", "2026-02-26 00:00 +0000", "2026-03-05 00:00 +0000", "168h"},
		{"week,start=fri", "UTC", "2026-03-01T12:00:00Z", "2026-02-27 00:00 +0000", "2026-03-06 00:00 +0000", "168h"},
		{"week,start=sat", "UTC", "2026-03-01T12:00:00Z", "2026-02-28 00:00 +0000", "2026-03-07 00:00 +0000", "168h"},
		{"week,start=sun", "UTC", "2026-03-01T12:00:00Z", "2026-03-01 00:00 +0000", "2026-03-08 00:00 +0000", "168h"},
		{"week,start=sun,hour=18", "UTC", "2026-03-01T12:00:00Z", "2026-02-22 18:00 +0000", "2026-03-01 18:00 +0000", "168h"},
		{"week", "UTC", "2025-12-31T12:00:00Z", "2025-12-29 00:00 +0000", "2026-01-05 00:00 +0000", "168h"},
		// The new year after a leap year from 2038 on, east and west.
		{"year", "Australia/Lord_Howe", "2044-06-01T12:00:00Z", "2044-01-01 00:00 +1100", "2045-01-01 00:00 +1100", "8784h"},
		{"day", "Australia/Lord_Howe", "2044-12-31T12:59:59Z", "2044-12-31 00:00 +1100", "2045-01-01 00:00 +1100", "24h"},
		{"month", "Pacific/Auckland", "2045-01-01T12:00:00Z", "2045-01-01 00:00 +1300", "2045-02-01 00:00 +1300", "744h"},
		{"day", "America/New_York", "2044-12-31T12:00:00Z", "2044-12-31 00:00 -0500", "2045-01-01 00:00 -0500", "24h"},
	} {
		zone := zoneOf(t, c.zone)
		start, end := windowOf(t, "fixed:1/"+c.limit+",tz="+c.zone, c.at, zone)
		const shown = "2006-01-02 15:04 -0700"
		hours, err := time.ParseDuration(c.hours)
		if err != nil {
			t.Fatal(err)
		}
		if s, e := start.Format(shown), end.Format(shown); s != c.from || e != c.to || end.Sub(start) != hours {
			t.Errorf("%s in %s at %s: %s to %s, %v, want %s to %s, %v", c.limit, c.zone, c.at, s, e, end.Sub(start), c.from, c.to, hours)
		}
	}
}

// The windows of every zone and unit follow each other without a gap for two years
// around every sort of change, as the clocks of the model show.
func TestCalendarWindowsFollowEachOther(t *testing.T) {
	for _, zone := range append(slices.Clone(zones), "Africa/Casablanca", "Asia/Beirut", "Pacific/Kwajalein", "America/Caracas", "Asia/Pyongyang") {
		for _, from := range []int{1993, 2009, 2011, 2026, 2040} {
			for _, limit := range []string{"day", "day,hour=2", "week,start=sun", "month,hour=1", "year"} {
				l := mustParse(t, fmt.Sprintf("fixed:1/%s,tz=%s", limit, zone))
				at := time.Date(from, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano()
				_, at, _ = l.CalendarWindow(at)
				for stop := time.Date(from+1, 2, 1, 0, 0, 0, 0, time.UTC).UnixNano(); at < stop; {
					start, end, _ := l.CalendarWindow(at)
					s, e, _ := l.CalendarWindow(end - 1)
					if start != at || s != at || e != end {
						t.Fatalf("%s: a window ends at %d, the next one is %d to %d, or at its end %d to %d", l, at, start, end, s, e)
					}
					at = end
				}
			}
		}
	}
}

// Whatever the date is, it has a window: no overflow, no search without end.
func TestCalendarWindowsAtTheEndsOfTime(t *testing.T) {
	for _, unit := range []string{"day", "week", "month", "year"} {
		l := mustParse(t, "fixed:1/"+unit+",tz=America/New_York")
		for _, date := range []int64{time.Date(2040, 12, 31, 12, 0, 0, 0, time.UTC).UnixNano(), -1 << 63, -1 << 62, -1 << 60, 1 << 62, 1<<63 - 1} {
			if start, end, ok := l.CalendarWindow(date); !ok || start >= end {
				t.Errorf("%s at %d: %d to %d", unit, date, start, end)
			}
		}
	}
}

// An offset that moves while a window is open: the key stays in the window that it is
// in, or goes on to a later one.
func TestTheOffsetNeverTakesAKeyBack(t *testing.T) {
	const hour = int64(time.Hour)
	l := mustParse(t, "fixed:2/day")
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	at := func(state []byte, now, offset, cost int64) (bool, int64, []byte) {
		t.Helper()
		v, e := l.Decide(state, now, offset, cost, nil)
		if e.State != nil {
			state = e.State
		}
		return v.Allowed, v.RetryAfter, state
	}
	ok, _, state := at(nil, midnight-hour, 0, 2)
	if !ok {
		t.Fatal("a fresh window denies")
	}
	// Back by 3 hours: the window is open for 4.
	if ok, wait, _ := at(state, midnight-hour, -3*hour, 1); ok || wait != 4*hour {
		t.Errorf("moved back: %v, wait %v", ok, time.Duration(wait))
	}
	// Back by two days: it does not become a window of two days ago.
	if ok, wait, _ := at(state, midnight-hour, -48*hour, 1); ok || wait != 49*hour {
		t.Errorf("moved back by days: %v, wait %v", ok, time.Duration(wait))
	}
	// On by 2 hours: the window is over, the next one is open.
	ok, _, state = at(state, midnight-hour, 2*hour, 2)
	if !ok {
		t.Error("moved on: the next window denies")
	}
	// And back again: not to the window before, which has forgotten its two units.
	if ok, wait, _ := at(state, midnight-hour, 0, 1); ok || wait != 25*hour {
		t.Errorf("moved on and back: %v, wait %v", ok, time.Duration(wait))
	}
}

// The window of the call before is remembered. It is not taken for the one that begins
// where it ends.
func TestACalendarWindowEndsForTheNextCallToo(t *testing.T) {
	l := mustParse(t, "fixed:1/day")
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct{ now, reset int64 }{
		{midnight - 1, 1},
		{midnight, int64(24 * time.Hour)},
		{midnight - 1, 1},
		{midnight + 1, int64(24*time.Hour) - 1},
	} {
		if v, _ := l.Decide(nil, c.now, 0, 1, nil); !v.Allowed || v.ResetAfter != c.reset {
			t.Errorf("at midnight %+d ns: %+v, want a reset after %d ns", c.now-midnight, v, c.reset)
		}
	}
}
