package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Durations in ns that have no name in package time.
const (
	hour = int64(time.Hour)
	day  = 24 * hour
	week = 7 * day
)

// spell is a duration of ns much as a limit expression would write it, but exact,
// with a decimal where it needs one: 1h30m, 1m30.5s, 142.857143ms.
func spell(ns int64) string {
	if ns == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range []struct {
		name string
		ns   int64
	}{{"w", week}, {"d", day}, {"h", hour}, {"m", int64(time.Minute)}} {
		if n := ns / u.ns; n > 0 {
			b.WriteString(strconv.FormatInt(n, 10) + u.name)
			ns -= n * u.ns
		}
	}
	if ns > 0 {
		b.WriteString(time.Duration(ns).String())
	}
	return b.String()
}

// spellDays is spell without weeks, in which nobody counts a year.
func spellDays(ns int64) string {
	days := ""
	if ns >= day {
		days = strconv.FormatInt(ns/day, 10) + "d"
	}
	if ns%day == 0 && days != "" {
		return days
	}
	return days + spell(ns%day)
}

// seconds is ns as a decimal of seconds, exact: 0.6, 3, 1.000000001.
func seconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	s := sign + strconv.FormatInt(ns/1e9, 10)
	if rest := ns % 1e9; rest > 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%09d", rest), "0")
	}
	return s
}

// count is a number of things: 1 unit, 2 units.
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
