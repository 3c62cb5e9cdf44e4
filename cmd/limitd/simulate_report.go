package main

import (
	"fmt"
	"io"

	"limitd/algo"
)

// report says what became of the trace, and draws it.
func (r *replay) report(w io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	span := r.last.at - r.first.at
	line("limit", "%s", r.limit)
	line("calls", "%d in %s, from %s to %s", r.calls, spell(span), r.first.text, r.last.text)
	line("admitted", "%s, %s", count(r.admitted, "call"), count(r.unitsIn, "unit"))
	line("denied", "%s, %s", count(r.denied, "call"), count(r.unitsOut, "unit"))
	if r.impossible > 0 {
		line("", "%s of more than %s, which can never pass", count(r.impossible, "call"), count(r.limit.Burst, "unit"))
	}
	if r.peeks > 0 {
		line("peeks", "%s", count(r.peeks, "call"))
	}
	if r.refunds > 0 {
		line("refunds", "%s, for %s", count(r.refunds, "call"), count(r.unitsBack, "unit"))
	}
	if r.wait.ns > 0 {
		line("longest wait", "%s, said at %s", spell(r.wait.ns), r.wait.call.text)
	}
	if r.limit.Algorithm == algo.Leaky && r.limit.Burst > 1 {
		line("longest delay", "%s%s", spell(r.delay.ns), saidAt(r.delay))
	}
	if r.admitted > 0 {
		r.reportWindow(line)
	}
	if span > 0 {
		fmt.Fprintln(w)
		r.plot.draw(w, r.first.text)
	}
}

func saidAt(s said) string {
	if s.ns == 0 {
		return ""
	}
	return ", said at " + s.call.text
}

// reportWindow has the most in a window, and the most that it could have been.
func (r *replay) reportWindow(line func(name, format string, args ...any)) {
	atMost := ""
	if r.window.coarse {
		atMost = "at most "
	}
	worst := fmt.Sprintf(" (never more than %d)", r.limit.WorstCase())
	switch {
	case r.refunds > 0:
		worst = " (refunds are not subtracted)"
	case r.limit.PeriodLength() == 0: // calendar windows are not all as long as this
		worst = ""
	}
	line("most in a "+spellPeriod(r.window.length), "%s%s, up to %s%s",
		atMost, count(r.window.most, "unit"), r.window.until.text, worst)
}

// spellPeriod is spell, of the calendar's lengths in days.
func spellPeriod(ns int64) string {
	if ns > week && ns%day == 0 {
		return spellDays(ns)
	}
	return spell(ns)
}
