package model

import (
	"fmt"
	"strings"

	"limitd/trace"
)

// IDs. What is charged under an ID is remembered for a time (limits.id_ttl of cluster
// time): the same call under it is answered the same and charges nothing, another one is
// refused. What was denied is not remembered. A refund that names the ID gives back, once
// for each limit, at most what was charged.

// ID names what was charged under a token.
type ID struct {
	NS    uint8 // of the call
	Token string
}

// Charge is what is remembered.
type Charge struct {
	At, Over int64 // cluster time of the decision, and when it is forgotten
	call     string
	parts    []charged
}

// charged is what one limit was charged.
type charged struct {
	record   Record
	cost     int64
	until    int64 // from when on the charge counts no more
	refunded bool
	answer   Answer
}

// Text tells calls under one ID apart: the command, its keys, limits and costs.
func Text(c *trace.Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %s %d", c.Op, c.Key, c.Limit, c.Cost)
	for _, p := range c.Parts {
		fmt.Fprintf(&b, " %q %s %d", p.Key, p.Limit, p.Cost)
	}
	return b.String()
}

// known is what is remembered at now.
func (d *Decided) known(now int64, v View) *Charge {
	if ch := v.Charge(ID{d.Call.NS, d.Call.ID}); ch != nil && ch.Over > now {
		return ch
	}
	return nil
}

// repeats answers a call whose ID is known, and says so.
func (d *Decided) repeats(now int64, v View) bool {
	c := &d.Call
	ch := d.known(now, v)
	switch {
	case ch == nil:
		return false
	case ch.call != Text(c):
		c.Status = "err"
		return true
	}
	c.Repeated, d.At = true, ch.At
	if c.Op == "take" {
		d.answer(ch.parts[0].answer)
		return true
	}
	for i := range c.Parts {
		setPart(&c.Parts[i], ch.parts[i].answer)
	}
	Conclude(c)
	return true
}

func (d *Decided) remember(now, idTTL int64, parts []charged) {
	d.Change.remember(ID{d.Call.NS, d.Call.ID}, &Charge{At: now, Over: now + idTTL, call: Text(&d.Call), parts: parts})
}

// refund gives back what the call of the ID was charged for a record.
func (d *Decided) refund(l Limit, r Record, now int64, v View) {
	c := &d.Call
	ch := d.known(now, v)
	which := -1
	if ch != nil {
		for i := range ch.parts {
			if ch.parts[i].record == r {
				which = i
			}
		}
	}
	if which < 0 {
		c.Status = "err"
		return
	}
	p := ch.parts[which]
	s := v.State(r)
	units := min(p.cost, -c.Cost)
	if p.refunded || p.until <= now || units < 1 {
		a, _ := l.Take(s, now, 0)
		a.Allowed, a.Retry, a.Delay = true, 0, 0
		d.answer(a)
		c.Repeated = p.refunded
		return
	}
	a, after := l.Refund(s, now, units, ch.At)
	d.answer(a)
	d.Given = units
	d.Change.set(r, after)
	next := *ch
	next.parts = append([]charged(nil), ch.parts...)
	next.parts[which].refunded = true
	d.Change.remember(ID{c.NS, c.ID}, &next)
}
