package algo

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// options are what stands behind the period; at is where, from 0, -1: nowhere.
type options struct {
	burst, queue     int64
	burstAt, queueAt int
}

var weekdays = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// options reads them all, each at most once.
func (p *exprParser) options(l *Limit) options {
	o := options{burstAt: -1, queueAt: -1}
	seen := map[string]bool{}
	for p.err == nil && p.rest != "" {
		p.rest = p.rest[1:] // the comma
		at := p.pos()
		name := p.until("=,")
		switch {
		case !l.has(name):
			p.failAt(at, "%s", l.optionError(name))
		case seen[name]:
			p.failAt(at, "%s is given twice", name)
		case !strings.HasPrefix(p.rest, "="):
			p.failAt(p.pos(), "%s needs a value: %s=...", name, name)
		}
		if p.err != nil {
			return o
		}
		seen[name] = true
		p.rest = p.rest[1:]
		at = p.pos()
		switch name {
		case "burst":
			o.burst, o.burstAt = p.number(name, ""), at
		case "queue":
			o.queue, o.queueAt = p.number(name, ""), at
		case "hour":
			h := p.number(name, "")
			if h > 23 {
				p.failAt(at, "hour must be 0 to 23, not %d", h)
			}
			l.calendar.hour = int(h)
		case "start":
			p.weekday(l, at)
		case "tz":
			p.zone(l, at)
		}
	}
	return o
}

// has says whether a limit like l may have the option.
func (l *Limit) has(name string) bool {
	switch name {
	case "burst":
		return l.Algorithm == GCRA || l.Algorithm == Token
	case "queue":
		return l.Algorithm == Leaky
	case "tz", "hour":
		return l.calendar != nil
	case "start":
		return l.calendar != nil && l.calendar.unit == unitWeek
	}
	return false
}

func (l *Limit) optionError(name string) string {
	switch name {
	case "burst":
		return "burst is an option of gcra and token"
	case "queue":
		return "queue is an option of leaky"
	case "tz", "hour":
		return name + " is an option of fixed with day, week, month or year"
	case "start":
		return "start is an option of fixed with week"
	case "":
		return "an option is missing behind the comma"
	}
	var use []string
	for _, n := range []string{"burst", "queue", "tz", "start", "hour"} {
		if l.has(n) {
			use = append(use, n)
		}
	}
	if use == nil {
		return fmt.Sprintf("unknown option %s, there is none here", strconv.Quote(name))
	}
	return fmt.Sprintf("unknown option %s, use %s", strconv.Quote(name), strings.Join(use, ", "))
}

func (p *exprParser) weekday(l *Limit, at int) {
	s := p.until(",")
	for d, name := range weekdays {
		if s == name {
			l.calendar.start = time.Weekday(d)
			return
		}
	}
	p.failAt(at, "unknown day %s, use mon, tue, wed, thu, fri, sat, sun", strconv.Quote(s))
}

// maxZone is the longest name of a time zone, so that the identity fits into a record.
const maxZone = 64

func (p *exprParser) zone(l *Limit, at int) {
	s := p.until(",")
	if s == "" || s == "Local" || s == "localtime" || len(s) > maxZone { // no node's own zone: it is not the others'
		p.failAt(at, "unknown time zone %s, use a name like UTC or Asia/Dhaka", strconv.Quote(s))
		return
	}
	loc, err := time.LoadLocation(s)
	if err != nil {
		p.failAt(at, "unknown time zone %s, use a name like UTC or Asia/Dhaka", strconv.Quote(s))
		return
	}
	l.calendar.zone, l.calendar.loc = s, loc
}

// measure turns what was read into the numbers that a decision needs.
func (p *exprParser) measure(l *Limit, o options, limitAt, periodAt int) {
	if n := l.nominal(); l.limit > n {
		p.failAt(limitAt, "more than 10^9 per second: %d in %d ns", l.limit, n)
		return
	}
	switch l.Algorithm {
	case Fixed, Sliding, Log:
		if l.Burst = l.limit; l.Burst > maxUnits {
			p.failAt(limitAt, "limit %d is too large: at most 2^61", l.limit)
		}
		if l.expr.period > l.longest() {
			p.failAt(periodAt, "the period is too long: at most 2^61 ns (73 years) for this algorithm")
		}
		return
	}
	// Rounded up, so that the limit is never exceeded by rounding.
	l.Interval = (l.expr.period-1)/l.limit + 1
	at, name := limitAt, "limit"
	switch {
	case l.Algorithm == Leaky:
		l.Burst = o.queue + 1
		at, name = o.queueAt, "queue"
	case o.burstAt >= 0:
		l.Burst = o.burst
		at, name = o.burstAt, "burst"
	default:
		l.Burst = l.limit
	}
	if hi, lo := bits.Mul64(uint64(l.Interval), uint64(l.Burst)); hi > 0 || lo > maxSpan {
		p.failAt(max(at, limitAt), "%s is too large: at %d ns for one unit, it stands for more than 2^62 ns (146 years)", name, l.Interval)
	}
}

// nominal is the length in ns that a window of l has at least.
func (l Limit) nominal() int64 {
	if l.calendar != nil {
		return l.calendar.unit.shortest()
	}
	return l.expr.period
}

// longest is the longest period in ns. Counters keep two windows, whose ends are times.
func (l Limit) longest() int64 {
	switch l.Algorithm {
	case Fixed, Sliding, Log:
		return maxSpan / 2
	}
	return maxSpan
}
