package check

import (
	"fmt"
	"slices"

	"limitd/jepsen/history"
	"limitd/trace"
)

// checkInDoubt: for every operation o, with n(o) the entries anywhere that took effect
// and in which o changes state,
//
//	fail: n(o) = 0        info: n(o) <= 1        ok: n(o) <= 1
//
// and every tag in a trace is an operation's, on the key that it named. So each
// operation in doubt is settled: it has its entry, or it never had an effect. Forked
// entries count, since they took effect on some node.
//
// It trusts that nodes write down each round before they propose it.
func checkInDoubt(e *evidence, r *result) {
	effective := map[string]bool{} // by digest
	for _, x := range e.lineage {
		effective[x.Digest] = true
	}
	for _, x := range e.forked {
		effective[x.Digest] = true
	}
	charged := map[uint64][]*row{}
	for _, x := range e.rounds {
		for i := range x.row.Calls {
			c := &x.row.Calls[i]
			e.checkTag(x.row, c, r)
			d := decision{call: c}
			d.readParts()
			if c.Tag != 0 && c.Status == "ok" && d.changes() && effective[x.row.Digest] {
				charged[c.Tag] = append(charged[c.Tag], x.row)
			}
		}
	}
	for _, l := range e.locals {
		for i := range l.Calls {
			e.checkTag(l.row, &l.Calls[i], r)
		}
	}
	applied, never := int64(0), int64(0)
	for _, o := range e.ops {
		rows := charged[o.invoke.Tag]
		if o.invoke.Tag == 0 {
			continue
		}
		r.Checked++
		switch n := len(rows); {
		case n > 1:
			r.bad(Example{Says: fmt.Sprintf("%s; it took effect %d times", o, n), Key: o.keyName(), Node: o.invoke.Node, Events: o.events(), Rows: lines(rows...)})
		case n > 0 && o.typ == history.Fail:
			r.bad(Example{Says: fmt.Sprintf("%s; it took effect all the same", o), Key: o.keyName(), Node: o.invoke.Node, Events: o.events(), Rows: lines(rows...)})
		case o.typ == history.Info && n > 0:
			applied++
		case o.typ == history.Info:
			never++
		}
	}
	r.figure("in_doubt_charged", applied)
	r.figure("in_doubt_not_charged", never)
}

// checkTag compares a tagged call with its operation.
func (e *evidence) checkTag(x *row, c *trace.Call, r *result) {
	if c.Tag == 0 {
		return
	}
	o := e.byTag[c.Tag]
	if o == nil {
		r.bad(Example{Says: fmt.Sprintf("tag %d, which no client sent", c.Tag), Node: x.Node, Rows: lines(x)})
		return
	}
	d := decision{call: c}
	d.readParts()
	same := len(o.keys) == 0 || slices.Equal(o.keys, d.keys()) && o.asks(&d) && c.Peek == o.peek && c.ID == o.id
	if !same {
		r.bad(Example{Says: fmt.Sprintf("%s; a node decided %s %s, cost %d, under the same tag", o, c.Op, c.Key, c.Cost), Key: o.keyName(), Node: x.Node, Events: o.events(), Rows: lines(x)})
	}
}

// asks says that a decision is about the same limits and costs.
func (o *op) asks(d *decision) bool {
	return slices.EqualFunc(o.parts, d.parts, func(a, b part) bool {
		return a.record == b.record && a.limit == b.limit && a.cost == b.cost
	})
}
