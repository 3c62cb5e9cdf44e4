package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for machines that have none
)

// Calendar are windows by the date, in cluster time: each begins when the clocks of a zone
// show the hour of a day, of the first day of a week, a month or a year, or what comes
// after it, for the first time. (RL.CLUSTER CALENDAR, which moves the date against cluster
// time, is none that this model knows.)
type Calendar struct {
	Unit  uint8 // an index of calendarUnits; 0: no calendar
	First uint8 // day of a week, 0 is Sunday
	Hour  uint8
	Zone  string
}

var (
	calendarUnits = []string{"", "day", "week", "month", "year"}
	weekdays      = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// shortestWindow is less than any calendar window has, ns: a day on which clocks change.
const shortestWindow = int64(22 * time.Hour)

// set an option of the expression; false: there is no such one.
func (c *Calendar) set(name, value string) bool {
	switch name {
	case "tz":
		c.Zone = value
		_, err := time.LoadLocation(value)
		return err == nil && value != "Local"
	case "start":
		day := slices.Index(weekdays, value)
		c.First = uint8(max(day, 0))
		return day >= 0 && calendarUnits[c.Unit] == "week"
	case "hour":
		n, err := strconv.ParseUint(value, 10, 8)
		c.Hour = uint8(n)
		return err == nil && n < 24
	}
	return false
}

// calendarOf is the calendar of a unit without options.
func calendarOf(unit string) (c Calendar, ok bool) {
	i := slices.Index(calendarUnits, unit)
	return Calendar{Unit: uint8(max(i, 0)), First: uint8(time.Monday), Zone: "UTC"}, i > 0
}

// readCalendar reads one as an identity has it: unit, first day of a week, hour, zone.
func readCalendar(b []byte) (c Calendar, err error) {
	if len(b) < 4 {
		return c, fmt.Errorf("%x is no calendar", b)
	}
	c = Calendar{b[0], b[1], b[2], string(b[3:])}
	if _, err := time.LoadLocation(c.Zone); err != nil || c.Unit < 1 || int(c.Unit) >= len(calendarUnits) || c.First > 6 || c.Hour > 23 {
		return c, fmt.Errorf("%x is no calendar: %v", b, err)
	}
	return c, nil
}

func (c Calendar) bytes() []byte { return append([]byte{c.Unit, c.First, c.Hour}, c.Zone...) }

// cachedWindows has of each calendar the window that was asked for last.
var cachedWindows sync.Map // of Calendar to [2]int64

// window that t lies in, from start to before end, ns of cluster time.
func (c Calendar) window(t int64) (start, end int64) {
	if w, ok := cachedWindows.Load(c); ok {
		if w := w.([2]int64); w[0] <= t && t < w[1] {
			return w[0], w[1]
		}
	}
	loc, err := time.LoadLocation(c.Zone)
	if err != nil {
		panic("model: a calendar that was not read: " + err.Error())
	}
	start = math.MinInt64
	for k := -2; ; k++ {
		end = c.begin(loc, t, k)
		if end > t {
			cachedWindows.Store(c, [2]int64{start, end})
			return start, end
		}
		start = end
	}
}

// begin of the k-th window from the one of the day that the clocks show at t.
func (c Calendar) begin(loc *time.Location, t int64, k int) int64 {
	y, m, d := time.Unix(0, t).In(loc).Date()
	switch calendarUnits[c.Unit] {
	case "day":
		d += k
	case "week":
		today := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday()
		d += 7*k - (int(today)-int(c.First)+7)%7
	case "month":
		m, d = m+time.Month(k), 1
	case "year":
		y, m, d = y+k, time.January, 1
	}
	return firstShown(loc, time.Date(y, m, d, int(c.Hour), 0, 0, 0, time.UTC).Unix()) * 1e9
}

// firstShown is the first second at which clocks show a local time, as seconds since a
// local 1970, or a later one: it is looked for minute by minute, since clocks change.
func firstShown(loc *time.Location, local int64) int64 {
	shown := func(t int64) bool {
		_, east := time.Unix(t, 0).In(loc).Zone()
		return t+int64(east) >= local
	}
	t := local - 17*3600 // no zone is as far from UTC
	for !shown(t) {
		t += 60
	}
	return first(t-60, t, shown)
}

// text as RL.LIST and expressions have it: the unit with those options that are not usual.
func (c Calendar) text() string {
	var b strings.Builder
	b.WriteString(calendarUnits[c.Unit])
	if c.Zone != "UTC" {
		b.WriteString(",tz=" + c.Zone)
	}
	if c.First != uint8(time.Monday) {
		b.WriteString(",start=" + weekdays[c.First])
	}
	if c.Hour > 0 {
		fmt.Fprintf(&b, ",hour=%d", c.Hour)
	}
	return b.String()
}
