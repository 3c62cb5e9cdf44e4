package algo

import (
	"strconv"
	"strings"
	"time"
)

// String is the limit as an expression that [Parse] reads as the same limit; of
// CL.THROTTLE's, which has none, a description.
func (l Limit) String() string {
	if l.expr != nil {
		return l.text
	}
	return "throttle of " + strconv.FormatInt(l.Burst, 10) + ", one per " + strconv.FormatInt(l.Interval, 10) + " ns"
}

// Name is the algorithm as an expression names it.
func (a Algorithm) Name() string {
	if a == Throttle {
		return "throttle"
	}
	for name, b := range algorithmNames {
		if a == b {
			return name
		}
	}
	return "unknown"
}

func (l Limit) print(o options) string {
	var b strings.Builder
	if l.Algorithm != GCRA {
		b.WriteString(l.Algorithm.Name() + ":")
	}
	b.WriteString(strconv.FormatInt(l.limit, 10) + "/" + l.Period())
	number := func(name string, n int64) { b.WriteString("," + name + "=" + strconv.FormatInt(n, 10)) }
	if o.burstAt >= 0 && o.burst != l.limit {
		number("burst", o.burst)
	}
	if o.queue > 0 {
		number("queue", o.queue)
	}
	if c := l.calendar; c != nil {
		if c.zone != "UTC" {
			b.WriteString(",tz=" + c.zone)
		}
		if c.start != time.Monday {
			b.WriteString(",start=" + weekdays[c.start])
		}
		if c.hour > 0 {
			number("hour", int64(c.hour))
		}
	}
	return b.String()
}

// Period is the period as an expression writes it: 1h30m, day; "" for CL.THROTTLE's.
func (l Limit) Period() string {
	switch {
	case l.expr == nil:
		return ""
	case l.calendar != nil:
		return unitNames[l.calendar.unit]
	}
	return printDuration(l.expr.period)
}

func printDuration(ns int64) string {
	var b strings.Builder
	for _, u := range durationUnits {
		if n := ns / u.ns; n > 0 {
			b.WriteString(strconv.FormatInt(n, 10) + u.name)
			ns -= n * u.ns
		}
	}
	return b.String()
}
