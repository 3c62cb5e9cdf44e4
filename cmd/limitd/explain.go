package main

import (
	"fmt"
	"strings"
	"time"

	"limitd/algo"
)

// row is a fact about a limit: its name, and one line or several.
type row struct {
	name  string
	lines []string
}

// writeExplanation writes all that is to be known about a limit, in words.
func writeExplanation(b *strings.Builder, l algo.Limit, date int64) {
	rows := []row{{"canonical", []string{l.String()}}}
	switch l.Algorithm {
	case algo.GCRA, algo.Token, algo.Leaky:
		rows = append(rows, explainBucket(l)...)
	case algo.Fixed:
		rows = append(rows, explainFixed(l, date)...)
	case algo.Sliding:
		rows = append(rows, explainSliding(l)...)
	case algo.Log:
		rows = append(rows, explainLog(l)...)
	}
	for _, r := range rows {
		for i, line := range r.lines {
			name := r.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(b, "%-11s %s\n", name, line)
		}
	}
}

// explainBucket is for the three that keep one time: how long until the bucket is
// full, or the queue empty, again.
func explainBucket(l algo.Limit) []row {
	burst, step, full := l.Burst, spell(l.Interval), spell(l.Interval*l.Burst)
	algorithm := "gcra: a bucket of " + count(burst, "unit") + " that is filled again evenly"
	passes := fmt.Sprintf("up to %d at once, when there were no calls for %s", burst, full)
	switch l.Algorithm {
	case algo.Token:
		algorithm = "token: a bucket of " + count(burst, "token") + ", and a new one each " + step
	case algo.Leaky:
		algorithm = fmt.Sprintf("leaky: a queue that lets one out each %s, with room for %d behind that one", step, burst-1)
		passes = fmt.Sprintf("up to %d at once, into the empty queue", burst)
		if burst == 1 {
			algorithm = "leaky: one each " + step + ", and nobody waits"
			passes = "never two at once"
		}
	}
	rate := fmt.Sprintf("%d per %s in the long run, which is one each %s", l.PerPeriod(), l.Period(), step)
	if l.Interval*l.PerPeriod() > l.PeriodLength() {
		rate += ", rounded up to the nanosecond"
	}
	worst := l.WorstCase()
	more := worst - burst // one by one, within the period
	worstLines := []string{
		anyPeriod(worst, l) + ": " + atOnceAndMore(burst, more, step),
		fmt.Sprintf("the next passes %s after the first", spell((more+1)*l.Interval)),
	}
	rows := []row{
		{"algorithm", []string{algorithm}},
		{"passes", []string{rate, passes}},
		{"worst case", worstLines},
		{"denied", append([]string{
			"retry_after is the shortest wait that suffices: at most " + step + " for one unit" + forAll(burst, full)},
			never(burst))},
	}
	if l.Algorithm == algo.Leaky && burst > 1 {
		rows = append(rows, row{"allowed", []string{
			"delay says how long to wait before acting: at most " + spell(l.Interval*(burst-1)),
			fmt.Sprintf("who waits so acts one unit each %s: at most %d in any %s", step, worst-burst+1, l.Period())}})
	}
	return append(rows,
		row{"starts anew", []string{"bit by bit, one unit each " + step + "; a key means nothing when all is back, after at most " + full}},
		row{"state", []string{"8 bytes per key: a time"}})
}

func explainFixed(l algo.Limit, date int64) []row {
	limit := l.Burst
	rows := []row{{"algorithm", []string{"fixed: a counter that starts at 0 in each window"}}}
	if _, _, ok := l.CalendarWindow(date); ok {
		rows = append(rows, explainCalendar(l, date)...)
	} else {
		period := l.Period()
		rows = append(rows,
			row{"passes", []string{fmt.Sprintf("%d in each window of %s, all at once if need be", limit, period)}},
			row{"worst case", []string{anyPeriod(l.WorstCase(), l) + fmt.Sprintf(": %d at the end of a window, %d at the beginning of the next", limit, limit)}},
			row{"denied", []string{"retry_after is the time until the window ends: at most " + period, never(limit)}},
			row{"starts anew", []string{
				"all at once, when a window ends: each " + period + " of cluster time, counted from 1970",
				"cluster time is no date: for windows that follow a clock, write " + fmt.Sprintf("fixed:%d/day", limit)}})
	}
	return append(rows, row{"state", []string{"16 bytes per key: the end of the window, and a counter"}})
}

func explainSliding(l algo.Limit) []row {
	limit, period := l.Burst, l.Period()
	worst := ": only 1, as with log"
	if limit > 1 {
		worst = fmt.Sprintf(": %d at the end of a window, %d just before the end of the next", limit, limit-1)
	}
	// The longest wait for one unit: all was taken at the beginning of a window.
	wait := spell(l.PeriodLength() + (l.PeriodLength()-1)/limit + 1)
	return []row{
		{"algorithm", []string{"sliding: the counters of two windows, the older one weighted by what of it is less than " + period + " ago"}},
		{"passes", []string{fmt.Sprintf("%d in the last %s, as well as two counters can tell: right if calls come evenly", limit, period)}},
		{"worst case", []string{anyPeriod(l.WorstCase(), l) + worst}},
		{"denied", []string{
			"retry_after is the shortest wait that suffices: at most " + wait + " for one unit" + forAll(limit, spell(2*l.PeriodLength())),
			never(limit)}},
		{"starts anew", []string{"bit by bit, as the older window moves out; a key means nothing after at most " + spell(2*l.PeriodLength())}},
		{"state", []string{"24 bytes per key: the start of the window, and two counters"}},
	}
}

func explainLog(l algo.Limit) []row {
	limit, period := l.Burst, l.Period()
	return []row{
		{"algorithm", []string{"log: the time of each admitted call of the last " + period}},
		{"passes", []string{fmt.Sprintf("%d in the last %s, all at once if need be", limit, period)}},
		{"worst case", []string{anyPeriod(l.WorstCase(), l) + ": never more, whatever the times"}},
		{"denied", []string{
			"retry_after is the time until enough of the oldest calls are " + period + " ago: at most " + period, never(limit)}},
		{"starts anew", []string{"call by call, each " + period + " after it was admitted"}},
		{"state", []string{
			fmt.Sprintf("%d bytes for each admitted call of the last %s: at most %d bytes per key", algo.LogEntry, period, l.StateSize())}},
	}
}

// anyPeriod says how much in any window of the period. A window has one of its two
// ends: of two calls that are exactly a period apart it never holds both.
func anyPeriod(units int64, l algo.Limit) string {
	return count(units, "unit") + " in any " + l.Period()
}

func atOnceAndMore(burst, more int64, step string) string {
	if more == 0 {
		return fmt.Sprintf("%d at once, and no more", burst)
	}
	return fmt.Sprintf("%d at once, and %d more, one each %s", burst, more, step)
}

// forAll is the wait for as many units as can pass at once, if these are not one.
func forAll(units int64, wait string) string {
	if units == 1 {
		return ""
	}
	return fmt.Sprintf(", %s for %d", wait, units)
}

func never(most int64) string {
	return fmt.Sprintf("a call of more than %s can never pass: retry_after is -1", count(most, "unit"))
}

// dateFormat has the offset, since a zone's days differ by it.
const dateFormat = "Mon 2006-01-02 15:04 -07:00"

// explainCalendar has the windows as of date, and the next ones.
func explainCalendar(l algo.Limit, date int64) []row {
	limit, unit := l.Burst, l.Period()
	loc, begins := calendarOf(l)
	var lines []string
	for i, what := range []string{"now since", "next from", "then from", "then from"} {
		start, end, _ := l.CalendarWindow(date)
		if end <= date { // behind the last one that is known, in 2116
			break
		}
		lines = append(lines, fmt.Sprintf("%s %s, %s long", what, time.Unix(0, start).In(loc).Format(dateFormat), spellDays(end-start)))
		if i == 0 {
			lines[0] += ", " + spellDays(end-date) + " left"
		}
		date = end
	}
	return []row{
		{"passes", []string{
			fmt.Sprintf("%d in each %s, all at once if need be", limit, unit),
			fmt.Sprintf("a %s begins %s, by the date in %s", unit, begins, loc)}},
		{"worst case", []string{
			fmt.Sprintf("%s around the beginning of a %s: %d just before, %d just after", count(l.WorstCase(), "unit"), unit, limit, limit),
			fmt.Sprintf("that is the most in any stretch that is not longer than the shortest %s in it", unit)}},
		{"denied", []string{"retry_after is the time until the " + unit + " ends", never(limit)}},
		{"starts anew", append([]string{"all at once, when a " + unit + " begins"}, lines...)},
	}
}

// calendarOf is the zone of a limit's windows, and when they begin, in words.
func calendarOf(l algo.Limit) (*time.Location, string) {
	id, err := algo.ReadIdent(l.Ident())
	if err != nil {
		panic(err) // Parse made it
	}
	loc, err := time.LoadLocation(id.Zone)
	if err != nil {
		panic(err) // Parse has loaded it
	}
	day := ""
	switch l.Period() {
	case "week":
		day = weekdayNames[id.Start] + " "
	case "month":
		day = "on its first day "
	case "year":
		day = "on January 1 "
	}
	return loc, fmt.Sprintf("%sat %02d:00", day, id.Hour)
}

var weekdayNames = map[string]string{
	"": "on Monday", "mon": "on Monday", "tue": "on Tuesday", "wed": "on Wednesday", "thu": "on Thursday",
	"fri": "on Friday", "sat": "on Saturday", "sun": "on Sunday",
}
