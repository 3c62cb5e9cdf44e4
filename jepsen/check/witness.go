package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
)

// checkWitness replays all decisions through the model, in the order of the entries
// that they are in, a round without effect behind the entry that it was decided on:
//
//	each answer = the model's, in every field, for the state so far and the time of the round
//	a call under an ID that is known is answered as the first one, or refused if it is another call
//	after each entry, the state that its effects make = the state that its calls make
//	(term, round) grows along that order, and one node leads a term
//	a round is decided on the entry before it
//	an operation that ended before another began comes before it
//	a client was told what was decided: its reply is that of one decision about its tag
//	an RL.LIST says of each record what the model says for its place in that order; of a leader alone, for some state of each record that it can have read
//
// So the order is a witness that all of it is linearizable. It trusts the traces for
// the order and the times, which monotone and over-admission-wall judge; an entry
// without a round (a tick, a setting) must not touch a key.
func checkWitness(e *evidence, r *result) {
	w := witness{e: e, r: r, model: newReplay(), effects: table{}}
	w.order()
	w.replay()
	e.realTime(r, "later in the order", func(d *decision) int64 { return int64(d.order) })
	w.replies()
}

type witness struct {
	e       *evidence
	r       *result
	model   replay // what calls make
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
	agreed, refused := w.e.agreed(), w.e.refused
	next := 0
	advance := func(stop func(*round) bool) map[model.Record]bool {
		touched := map[model.Record]bool{}
		for ; next < len(agreed) && !stop(agreed[next].round); next++ {
			for ; len(refused) > 0 && refused[0].order <= next; refused = refused[1:] {
				w.decide(refused[0], touched)
			}
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
			for _, r := range w.effects.cleared(f) {
				touched[r] = true
			}
			if r, err := recordOf(f); touches(f) && err == nil {
				touched[r] = true
			}
			if err := w.effects.apply(f); err != nil {
				w.r.bad(Example{Says: fmt.Sprintf("entry %d %v", x.Index, err), Key: key{f.NS, f.Key}.String(), Node: x.Node, Rows: lines(x.row)})
			}
		}
		w.compare(x, touched)
	}
	idle(last)
	for _, d := range refused {
		w.decide(d, map[model.Record]bool{})
	}
	if next < len(agreed) {
		x := agreed[next].row
		w.r.bad(Example{Says: fmt.Sprintf("a round was decided on entry %d, which never took effect", x.Base), Node: x.Node, Rows: lines(x)})
	}
}

// compare the state that the entry's effects make with the one that its calls make.
func (w *witness) compare(x *entry, touched map[model.Record]bool) {
	for _, r := range slices.SortedFunc(maps.Keys(touched), compareRecords) {
		w.r.Checked++
		says := ""
		if r.Kind == model.IDs {
			says = w.compareID(x, r)
		} else {
			of, m := w.effects[r].state, w.model.states[r]
			if !r.Kind.Same(of, m, x.At) {
				says = fmt.Sprintf("means nothing in %d ns by the entry's effects, and in %d ns by the decisions", r.Kind.Left(of, x.At), r.Kind.Left(m, x.At))
				w.model.states[r] = of // each mistake once
			}
		}
		if says == "" {
			continue
		}
		rows := lines(x.row)
		if x.round != nil {
			rows = append(rows, x.round.row.String())
		}
		w.r.bad(Example{Says: fmt.Sprintf("after entry %d the record of %s, %s", x.Index, r.Kind, says), Key: key{r.NS, r.Key}.String(), Node: x.Node, Rows: rows})
	}
}

// compareID: what was charged under an ID is remembered until it is over, and nothing else.
func (w *witness) compareID(x *entry, r model.Record) string {
	over := int64(0)
	if ch := w.model.charges[idOf(r)]; ch != nil && ch.Over > x.At {
		over = ch.Over
	}
	of := w.effects[r].expiry
	if of <= x.At {
		of = 0
	}
	if of == over {
		return ""
	}
	return fmt.Sprintf("of an ID, is kept until %d by the entry's effects, and until %d by the decisions (0: not at all)", of, over)
}

func compareRecords(a, b model.Record) int {
	return cmp.Or(compareKeys(key{a.NS, a.Key}, key{b.NS, b.Key}), cmp.Compare(int64(a.Kind.Algorithm), int64(b.Kind.Algorithm)), cmp.Compare(a.Kind.Period, b.Kind.Period), cmp.Compare(a.Kind.String(), b.Kind.String()))
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(int64(a.ns), int64(b.ns)), cmp.Compare(a.name, b.name))
}

// decide replays one decision.
func (w *witness) decide(d *decision, touched map[model.Record]bool) {
	w.r.Checked++
	want, err := model.Decide(d.call, d.row.At, w.e.idTTL(), &w.model)
	why := want.Differs(d.call)
	if err != nil {
		why = err.Error()
	}
	d.listed = want.List
	if d.made = want.At; d.call.Status != "ok" { // it changed nothing
		want.Change = model.Change{}
		if model.MayBeRefused(d.call) {
			why = ""
		}
	}
	w.model.take(d.call, want.Change, func(r model.Record) { touched[r] = true })
	if why != "" {
		w.r.bad(d.example(fmt.Sprintf("term %d, round %d, call %d, at %d: %s", d.row.Term, d.row.Round, d.seq, d.row.At, why)))
	}
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
			ok = ok || w.explains(d, o)
		}
		switch {
		case o.odd != "":
			w.r.bad(Example{Says: fmt.Sprintf("%s: %s", o, o.odd), Key: o.keyName(), Node: o.invoke.Node, Events: o.events()})
		case !ok && !(o.changed() && w.e.effectOf(o) == nil): // that one is durability's
			w.r.bad(Example{Says: fmt.Sprintf("%s, which is no decision about it", o), Key: o.keyName(), Node: o.invoke.Node, Events: o.events(), Rows: w.e.rowsOf(o)})
		}
	}
}
