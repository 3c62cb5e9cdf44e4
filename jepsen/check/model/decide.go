package model

import (
	"fmt"

	"limitd/trace"
)

// Record names a record.
type Record struct {
	NS   uint8
	Key  string // as traces have it
	Kind Identity
}

// View is the state that a call is decided on.
type View interface {
	State(Record) State
	Kinds(ns uint8, key string) []Identity // of the records that the key may have, CL.THROTTLE's excepted
	Charge(ID) *Charge                     // what was charged under an ID; nil: nothing is known
}

// Change is what a call leaves behind. (A flush leaves nothing of a namespace and its IDs;
// that is its caller's to do.)
type Change struct {
	States  map[Record]State
	Charges map[ID]*Charge
}

func (c *Change) set(r Record, s State) {
	if c.States == nil {
		c.States = map[Record]State{}
	}
	c.States[r] = s
}

func (c *Change) remember(id ID, ch *Charge) { c.Charges = map[ID]*Charge{id: ch} }

// Decided is how a call must be decided.
type Decided struct {
	Call   trace.Call
	At     int64 // cluster time of the decision that the answer is of
	Change Change
	Given  int64 // units that a refund gave back, of those that its ID was charged
	List   []Listed
}

// Decide decides a call at now on the state of a view, as a round does. An error says that
// the call is none that this model knows.
func Decide(c *trace.Call, now, idTTL int64, v View) (Decided, error) {
	d := Decided{Call: *c, At: now}
	d.Call.Status, d.Call.Repeated = "ok", false
	var err error
	switch c.Op {
	case "take":
		err = d.take(now, idTTL, v)
	case "takeall":
		err = d.takeAll(now, idTTL, v)
	case "reset", "exists", "type", "ttl":
		d.keys(now, v)
	case "list":
		d.List = list(c.NS, c.Key, now, v)
	}
	return d, err
}

// LimitOf is the limit of a take.
func LimitOf(c *trace.Call) (Limit, error) {
	if c.Algorithm == Throttle {
		return ThrottleLimit(c.Interval, c.Burst), nil
	}
	l, err := ParseLimit(c.Limit)
	if err == nil && (l.Algorithm != c.Algorithm || l.Burst != c.Burst || l.Interval != c.Interval) {
		err = fmt.Errorf("limit %q is traced as algorithm %d, burst %d, interval %d", c.Limit, c.Algorithm, c.Burst, c.Interval)
	}
	return l, err
}

// answer fills in what a take is answered.
func (d *Decided) answer(a Answer) {
	c := &d.Call
	c.Allowed, c.Remaining, c.Retry, c.Reset, c.Delay = a.Allowed, a.Remaining, a.Retry, a.Reset, a.Delay
}

func (d *Decided) take(now, idTTL int64, v View) error {
	c := &d.Call
	l, err := LimitOf(c)
	if err != nil {
		return err
	}
	r := Record{c.NS, c.Key, l.Identity}
	if c.ID != "" && c.Cost < 0 {
		d.refund(l, r, now, v)
		return nil
	}
	if c.ID != "" && d.repeats(now, v) {
		return nil
	}
	s := v.State(r)
	if c.Peek {
		d.answer(l.Peek(s, now, c.Cost))
		return nil
	}
	a, after := l.Take(s, now, c.Cost)
	d.answer(a)
	if !a.Allowed || c.Cost == 0 {
		return nil
	}
	d.Change.set(r, after)
	if c.ID != "" {
		d.remember(now, idTTL, []charged{{r, c.Cost, now + a.Reset, false, a}})
	}
	return nil
}

// takeAll: all parts on one state, and all are charged or none.
func (d *Decided) takeAll(now, idTTL int64, v View) error {
	c := &d.Call
	limits := make([]Limit, len(c.Parts))
	c.Parts = append([]trace.Part(nil), c.Parts...)
	for i := range c.Parts {
		var err error
		if limits[i], err = ParseLimit(c.Parts[i].Limit); err != nil {
			return err
		}
	}
	if c.ID != "" && d.repeats(now, v) {
		return nil
	}
	answers, after := make([]Answer, len(c.Parts)), make([]State, len(c.Parts))
	allowed := true
	for i, l := range limits {
		p := &c.Parts[i]
		answers[i], after[i] = l.Take(v.State(Record{c.NS, p.Key, l.Identity}), now, p.Cost)
		allowed = allowed && answers[i].Allowed
	}
	var all []charged
	for i, l := range limits {
		p := &c.Parts[i]
		r := Record{c.NS, p.Key, l.Identity}
		switch {
		case c.Peek || !allowed:
			answers[i] = PeekPart(l, v.State(r), now, p.Cost, allowed)
			all = append(all, charged{})
		case p.Cost > 0:
			d.Change.set(r, after[i])
			all = append(all, charged{r, p.Cost, now + answers[i].Reset, false, answers[i]})
		default:
			all = append(all, charged{r, 0, 0, false, answers[i]})
		}
		setPart(p, answers[i])
	}
	Conclude(c)
	if c.ID != "" && d.Change.States != nil {
		d.remember(now, idTTL, all)
	}
	return nil
}

// PeekPart is the answer for a part of a call that is not charged. Nobody waits for his
// turn who was denied.
func PeekPart(l Limit, s State, now, cost int64, allowed bool) Answer {
	a := l.Peek(s, now, cost)
	if !allowed {
		a.Delay = 0
	}
	return a
}

func setPart(p *trace.Part, a Answer) {
	p.Allowed, p.Remaining, p.Retry, p.Reset, p.Delay = a.Allowed, a.Remaining, a.Retry, a.Reset, a.Delay
}

// Conclude is what the parts of a takeall say together: the longest wait, of those that are
// equally long the first one's, and which part it is.
func Conclude(c *trace.Call) {
	c.Allowed, c.Retry, c.N = true, 0, -1
	for i, p := range c.Parts {
		if p.Allowed {
			continue
		}
		c.Allowed = false
		if c.N < 0 || c.Retry != Never && (p.Retry == Never || p.Retry > c.Retry) {
			c.N, c.Retry = int64(i), p.Retry
		}
	}
}

// keys answers the commands that concern all records of keys.
func (d *Decided) keys(now int64, v View) {
	c := &d.Call
	c.N = 0
	longest := int64(0)
	seen := map[string]bool{}
	for _, key := range append([]string{c.Key}, c.More...) {
		if c.Op == "reset" && seen[key] {
			continue // its records are gone
		}
		seen[key] = true
		left := int64(0)
		for _, kind := range append([]Identity{ofThrottle}, v.Kinds(c.NS, key)...) {
			r := Record{c.NS, key, kind}
			left = max(left, kind.Left(v.State(r), now))
			if c.Op == "reset" {
				d.Change.set(r, State{})
			}
		}
		if left > 0 {
			c.N++
		}
		longest = max(longest, left)
	}
	if c.Op == "ttl" {
		if c.N = longest; longest == 0 {
			c.N = -2
		}
	}
}

// Differs names a field in which a decision is not the one that it must be; empty: none.
func (d *Decided) Differs(c *trace.Call) string {
	w := &d.Call
	if c.Status != "ok" || w.Status != "ok" {
		if (c.Status == "ok") != (w.Status == "ok") {
			return fmt.Sprintf("%s is answered %s, the model %s", c.Op, c.Status, w.Status)
		}
		return ""
	}
	switch {
	case c.Repeated != w.Repeated:
		return fmt.Sprintf("%s under the ID %s: repeated %v, the model %v", c.Op, c.ID, c.Repeated, w.Repeated)
	case c.Op == "take":
		got, want := Answer{c.Allowed, c.Remaining, c.Retry, c.Reset, c.Delay}, Answer{w.Allowed, w.Remaining, w.Retry, w.Reset, w.Delay}
		if got != want {
			return fmt.Sprintf("take of %d from %d with an interval of %d ns%s: decided %+v, the model %+v", c.Cost, c.Burst, c.Interval, under(c.Limit), got, want)
		}
	case c.Op == "takeall":
		for i := range c.Parts {
			if c.Parts[i] != w.Parts[i] {
				return fmt.Sprintf("limit %d of a takeall: decided %+v, the model %+v", i+1, c.Parts[i], w.Parts[i])
			}
		}
		if c.Allowed != w.Allowed || c.Retry != w.Retry || c.N != w.N {
			return fmt.Sprintf("takeall: allowed %v, wait %d, denied by %d; the model %v, %d, %d", c.Allowed, c.Retry, c.N, w.Allowed, w.Retry, w.N)
		}
	case c.Op == "list": // its records are not traced: what was told of them is compared
	case c.N != w.N:
		return fmt.Sprintf("%s answers %d, the model %d", c.Op, c.N, w.N)
	}
	return ""
}

// MayBeRefused says that a round may refuse the call for what no model of a limiter knows: a
// log gives nothing back while a member has not told that it reads an entry that cuts.
func MayBeRefused(c *trace.Call) bool {
	return c.Op == "take" && c.Algorithm == Log && c.Cost < 0
}

func under(limit string) string {
	if limit == "" {
		return ""
	}
	return " under " + limit
}
