package algo

import (
	"sync/atomic"
	"time"
	_ "time/tzdata" // for machines that have none
)

// calendarUnit is the length of a calendar window. The values are part of a record's
// identity on disk: never renumber.
type calendarUnit uint8

const (
	unitDay   calendarUnit = 1
	unitWeek  calendarUnit = 2
	unitMonth calendarUnit = 3
	unitYear  calendarUnit = 4
)

var unitNames = [...]string{unitDay: "day", unitWeek: "week", unitMonth: "month", unitYear: "year"}

// shortest is the length in ns that windows of the unit have at least, where clocks
// change by an hour: a day of 23 hours, a year without a leap day.
func (u calendarUnit) shortest() int64 {
	days := [...]int64{unitDay: 1, unitWeek: 7, unitMonth: 28, unitYear: 365}[u]
	return (days*24 - 1) * int64(time.Hour)
}

// calendar is a sequence of windows by the date in a time zone. A window begins at
// the hour of a day, of the first day of a week, of a month, of a year; days have
// 23 or 25 hours where the zone changes its clocks.
type calendar struct {
	unit  calendarUnit
	zone  string // name of loc
	loc   *time.Location
	start time.Weekday // of weeks
	hour  int

	// Most calls are in the window of the call before. A new window allocates, once.
	last atomic.Pointer[window]
}

// window is from its start to before its end, in ns since 1970.
type window struct{ start, end int64 }

// end is the end of the window that date lies in.
func (c *calendar) end(date int64) int64 {
	if w := c.last.Load(); w != nil && w.start <= date && date < w.end {
		return w.end
	}
	w := c.window(date)
	c.last.Store(&w)
	return w.end
}

// window is the one that date lies in; of a date before 1933 or after 2116, the first
// or last one, so that no end of a window overflows.
func (c *calendar) window(date int64) window {
	date = min(max(date, firstDate), maxSpan-1)
	near := time.Unix(0, date).In(c.loc)
	k := 0
	for c.begin(near, k) > date {
		k--
	}
	for c.begin(near, k+1) <= date {
		k++
	}
	return window{c.begin(near, k), c.begin(near, k+1)}
}

// begin is where the k-th window begins, counted from the one of near's day.
func (c *calendar) begin(near time.Time, k int) int64 {
	y, m, d := near.Date()
	switch c.unit {
	case unitDay:
		d += k
	case unitWeek:
		d += 7*k - int(near.Weekday()-c.start+7)%7
	case unitMonth:
		m, d = m+time.Month(k), 1
	default:
		y, m, d = y+k, time.January, 1
	}
	return c.reached(time.Date(y, m, d, c.hour, 0, 0, 0, time.UTC).Unix())
}

// reached is the first moment at which the clocks of the zone show local (seconds,
// as if the zone were UTC) or later. If they leave it out, that is when they have
// changed; a window between two that were left out, as a whole day once was in
// Apia, is empty. If they show it twice, it is the first time. (time.Date takes
// either side of such a change, depending on the zone.)
func (c *calendar) reached(local int64) int64 {
	const eastmost = 24 * 60 * 60 // no zone is as far from UTC
	at := time.Unix(local-eastmost, 0).In(c.loc)
	for {
		_, east := at.Zone()
		first := max(at.Unix(), local-int64(east))
		_, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			// From 2038 on, ZoneBounds takes every year for one of 365 days, so on the last
			// day of leap years its end is behind. No zone changes its clocks on that day.
			end = at.Add(time.Hour)
		}
		if end.IsZero() || first < end.Unix() {
			return first * int64(time.Second)
		}
		at = end
	}
}
