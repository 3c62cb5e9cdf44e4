package model

import (
	"math/big"
	"time"
)

// Calendar are windows by the date that the clocks of a zone show. Their boundaries
// are found by watching the clocks: a window begins when they show its date for the
// first time, or a later one.
type Calendar struct {
	Unit  string // day, week, month, year
	Zone  *time.Location
	Start time.Weekday // of weeks
	Hour  int          // at which days begin

	from, to time.Time // what was watched
	begins   []time.Time
}

// End is the end of the window that date, ns since 1970, lies in.
func (c *Calendar) End(date *big.Int) *big.Int {
	_, end := c.Window(time.Unix(0, date.Int64()))
	return big.NewInt(end.UnixNano())
}

// Window is the window that t lies in.
func (c *Calendar) Window(t time.Time) (start, end time.Time) {
	const day = 24 * time.Hour // longer than any window, with changes of the zone's clocks:
	most := map[string]time.Duration{"day": 4 * day, "week": 11 * day, "month": 35 * day, "year": 370 * day}[c.Unit]
	if c.begins == nil || t.Add(-most).Before(c.from) || t.Add(most).After(c.to) {
		c.watch(t.Add(-2*most), t.Add(2*most))
	}
	for _, b := range c.begins {
		if b.After(t) {
			return start, b
		}
		start = b
	}
	panic("model: no window ends behind " + t.String())
}

// watch notes when windows begin, by looking at the clocks every few hours, and where
// another window's date shows, at every minute in between.
func (c *Calendar) watch(from, to time.Time) {
	const glance = 6 * time.Hour
	c.from, c.to, c.begins = from.Truncate(time.Minute), to, nil
	latest := c.shown(c.from)
	for t := c.from; t.Before(to); t = t.Add(glance) {
		if c.shown(t) <= latest {
			continue
		}
		// The clocks may have shown it twice: look at all since the glance before the last.
		for m := t.Add(-2 * glance); !m.After(t); m = m.Add(time.Minute) {
			if n := c.shown(m); n > latest {
				latest = n
				c.begins = append(c.begins, m)
			}
		}
	}
}

// shown is the number of the window whose date the clocks show at t.
func (c *Calendar) shown(t time.Time) int64 {
	t = t.In(c.Zone)
	y, m, d := t.Date()
	hh, mm, ss := t.Clock()
	date := time.Date(y, m, d, hh, mm, ss, 0, time.UTC).Add(-time.Duration(c.Hour) * time.Hour)
	switch c.Unit {
	case "day":
		return days(date)
	case "week":
		// 1970 began on a Thursday. Weeks of any first day change number on that day.
		return floorDiv(days(date)+int64(time.Thursday-c.Start), 7)
	case "month":
		return int64(date.Year())*12 + int64(date.Month())
	}
	return int64(date.Year())
}

// days is how many whole days of UTC t is behind 1970.
func days(t time.Time) int64 { return floorDiv(t.Unix(), 24*60*60) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
