package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
	"limitd/trace"
)

// checkWitness replays all decisions through the model, in the order of the entries
// that they are in, a round without effect behind the entry that it was decided on:
//
//	each answer = the model's, in every field, for the state so far and the time of the round
//	after each entry, the state that its effects make = the state that its calls make
//	(term, round) grows along that order, and one node leads a term
//	a round is decided on the entry before it
//	an operation that ended before another began comes before it
//	a client was told what was decided: its reply is that of one decision about its tag
//
// So the order is a witness that all of it is linearizable. It trusts the traces for
// the order and the times, which monotone and over-admission-wall judge; an entry
// without a round (a tick, a setting) must not touch a key.
func checkWitness(e *evidence, r *result) {
	w := witness{e: e, r: r, model: states{}, effects: table{}}
	w.order()
	w.replay()
	e.realTime(r, "later in the order", func(d *decision) int64 { return int64(d.order) })
	w.replies()
}

// states is what calls make.
type states map[key]model.State

type witness struct {
	e       *evidence
	r       *result
	model   states
	effects table
}

// order: who leads, and what a round is decided on.
func (w *witness) order() {
	leader := map[uint64]*row{}
	for _, x := range w.e.rounds {
		if l := leader[x.row.Term]; l == nil {
			leader[x.row.Term] = x.row
		} else if l.Node != x.row.Node {
			w.r.bad(Example{Says: fmt.Sprintf("%s and %s both lead term %d", l.Node, x.row.Node, x.row.Term), Node: x.row.Node, Rows: lines(l, x.row)})
		}
	}
	var before *round
	for _, d := range w.e.agreed() {
		x := d.round
		if before != nil && x != before && compare(before.row, x.row) >= 0 {
			w.r.bad(Example{Says: fmt.Sprintf("round %d of term %d comes after round %d of term %d", x.row.Round, x.row.Term, before.row.Round, before.row.Term), Node: x.row.Node, Rows: lines(before.row, x.row)})
		}
		before = x
	}
}

// replay goes through the entries, and the rounds between them.
func (w *witness) replay() {
	agreed := w.e.agreed()
	next := 0
	advance := func(stop func(*round) bool) map[key]bool {
		touched := map[key]bool{}
		for ; next < len(agreed) && !stop(agreed[next].round); next++ {
			w.decide(agreed[next], touched)
		}
		return touched
	}
	idle := func(upTo uint64) {
		advance(func(x *round) bool { return x.entry != nil || x.row.Base > upTo })
	}
	last := uint64(0)
	for _, x := range w.e.lineage {
		idle(last)
		last = x.Index
		touched := advance(func(y *round) bool { return y != x.round })
		for _, f := range x.Effects {
			if f.Op == "clear" || f.Op == "clearall" {
				for k := range w.effects {
					touched[k] = true
				}
			} else if f.Key != "" || f.Op == "replace" || f.Op == "delete" {
				touched[key{f.NS, f.Key}] = true
			}
			if err := w.effects.apply(f); err != nil {
				w.r.bad(Example{Says: fmt.Sprintf("entry %d %v", x.Index, err), Key: key{f.NS, f.Key}.String(), Node: x.Node, Rows: lines(x.row)})
			}
		}
		w.compare(x, touched)
	}
	idle(last)
	if next < len(agreed) {
		x := agreed[next].row
		w.r.bad(Example{Says: fmt.Sprintf("a round was decided on entry %d, which never took effect", x.Base), Node: x.Node, Rows: lines(x)})
	}
}

// compare the state that the entry's effects make with the one that its calls make.
func (w *witness) compare(x *entry, touched map[key]bool) {
	for _, k := range slices.SortedFunc(maps.Keys(touched), func(a, b key) int { return compareKeys(a, b) }) {
		w.r.Checked++
		of := w.effects.state(k)
		if m := w.model[k]; !of.Equal(m, x.At) {
			rows := lines(x.row)
			if x.round != nil {
				rows = append(rows, x.round.row.String())
			}
			w.r.bad(Example{
				Says: fmt.Sprintf("after entry %d the key is full in %d ns by the entry's effects, and in %d ns by the decisions", x.Index, of.Debt(x.At), m.Debt(x.At)),
				Key:  k.String(), Node: x.Node, Rows: rows,
			})
			w.model[k] = of // each mistake once
		}
	}
}

func compareKeys(a, b key) int {
	if a.ns != b.ns {
		return cmp.Compare(int64(a.ns), int64(b.ns))
	}
	switch {
	case a.name < b.name:
		return -1
	case a.name > b.name:
		return 1
	}
	return 0
}

// decide replays one decision.
func (w *witness) decide(d *decision, touched map[key]bool) {
	w.r.Checked++
	want, keys := answer(w.model.state, d.call, d.row.At)
	for k, s := range keys {
		w.model[k] = s
		touched[k] = true
	}
	if d.call.Op == "flush" || d.call.Op == "flushall" {
		for k := range w.model {
			if d.call.Op == "flushall" || k.ns == d.call.NS {
				delete(w.model, k)
				touched[k] = true
			}
		}
	}
	if why := want.differs(d.call); why != "" {
		x := Example{Says: fmt.Sprintf("term %d, round %d, call %d, at %d: %s", d.row.Term, d.row.Round, d.seq, d.row.At, why), Key: key{d.call.NS, d.call.Key}.String(), Node: d.row.Node, Rows: lines(d.row)}
		if d.op != nil {
			x.Events = d.op.events()
		}
		w.r.bad(x)
	}
}

func (t states) state(k key) model.State { return t[k] }

// expected is what a call must be answered.
type expected struct {
	take bool
	model.Answer
	n int64
}

// answer is the model's answer to a call, and the states of keys that it changes.
func answer(state func(key) model.State, c *trace.Call, now int64) (expected, map[key]model.State) {
	k := key{c.NS, c.Key}
	if c.Op == "take" {
		a, s := state(k).Take(now, model.Call{Interval: c.Interval, Burst: c.Burst, Cost: c.Cost})
		return expected{take: true, Answer: a}, map[key]model.State{k: s}
	}
	x := expected{}
	if c.Op == "flush" || c.Op == "flushall" {
		return x, nil
	}
	longest := int64(0)
	gone := map[key]model.State{}
	see := func(k key) {
		s := state(k)
		if _, ok := gone[k]; ok && c.Op == "reset" {
			return // named twice
		}
		if s.Holds(now) {
			x.n++
			longest = max(longest, s.Debt(now))
		}
		gone[k] = model.State{}
	}
	see(k)
	for _, m := range c.More {
		see(key{c.NS, m})
	}
	switch c.Op {
	case "reset":
		return x, gone
	case "ttl":
		x.n = longest
		if longest == 0 {
			x.n = -2
		}
	}
	return x, nil
}

// differs says how the decision is not what is expected; empty: it is.
func (x expected) differs(c *trace.Call) string {
	if !x.take {
		if c.N != x.n {
			return fmt.Sprintf("%s answers %d, the model %d", c.Op, c.N, x.n)
		}
		return ""
	}
	got := model.Answer{Allowed: c.Allowed, Remaining: c.Remaining, Retry: c.Retry, Reset: c.Reset}
	if got != x.Answer {
		return fmt.Sprintf("take of %d from %d with an interval of %d ns: decided %+v, the model %+v", c.Cost, c.Burst, c.Interval, got, x.Answer)
	}
	return ""
}

// replies: what clients were told.
func (w *witness) replies() {
	for _, o := range w.e.ops {
		if o.typ != history.OK || o.verb == other || o.invoke.Tag == 0 {
			continue
		}
		w.r.Checked++
		ok := false
		for _, d := range w.e.byDecided[o.invoke.Tag] {
			ok = ok || slices.Equal(d.answer(o.verb), o.reply)
		}
		switch {
		case o.odd != "":
			w.r.bad(Example{Says: fmt.Sprintf("%s: %s", o, o.odd), Key: o.keyName(), Node: o.invoke.Node, Events: o.events()})
		case !ok && !(o.changed() && w.e.effectOf(o) == nil): // that one is durability's
			w.r.bad(Example{Says: fmt.Sprintf("%s, which is no decision about it", o), Key: o.keyName(), Node: o.invoke.Node, Events: o.events(), Rows: w.e.rowsOf(o)})
		}
	}
}
