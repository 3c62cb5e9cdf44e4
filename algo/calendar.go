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

// shortest is the length in ns that windows of the unit have at least: with a day
// of 23 hours, and a year without a leap day.
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

	last atomic.Pointer[window] // most calls are in the window of the call before
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

// window is the one that date lies in. Where a zone's change of clocks leaves out the
// hour, or a whole day, at which a window would begin, it begins when the clocks
// have changed, or there is none.
func (c *calendar) window(date int64) window {
	begins := c.beginnings(time.Unix(0, date).In(c.loc))
	k := 0
	for begins(k) > date {
		k--
	}
	for begins(k+1) <= date {
		k++
	}
	return window{begins(k), begins(k + 1)}
}

// beginnings is where windows begin, counted from the one that near's day lies in.
func (c *calendar) beginnings(near time.Time) func(k int) int64 {
	y, m, d := near.Date()
	at := func(y int, m time.Month, d int) int64 { return time.Date(y, m, d, c.hour, 0, 0, 0, c.loc).UnixNano() }
	switch c.unit {
	case unitDay:
		return func(k int) int64 { return at(y, m, d+k) }
	case unitWeek:
		d -= int(near.Weekday()-c.start+7) % 7
		return func(k int) int64 { return at(y, m, d+7*k) }
	case unitMonth:
		return func(k int) int64 { return at(y, m+time.Month(k), 1) }
	}
	return func(k int) int64 { return at(y+k, time.January, 1) }
}
