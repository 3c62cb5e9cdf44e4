package check

import (
	"fmt"
	"sort"

	"limitd/jepsen/history"
	"limitd/trace"
)

// checkMonotone, with at the time of an entry or round and T cluster time as applied:
//
//	T after an entry that takes effect = max(T before, at), and at >= T before    (the lineage)
//	T never decreases along the life of a node
//	at never decreases over rounds, in their order
//	an operation that ended before another began was decided at no later a time
//	within a term, at - boot clock of the leader is one number
//
// The last one is judged by bounds: a round read its time before its own row was
// written and after the one before it had ended. It trusts that nodes write down
// the times that they use, and the boot clock.
func checkMonotone(e *evidence, r *result) {
	t := int64(0)
	for _, x := range e.lineage {
		r.Checked++
		if x.At < t || x.T != max(t, x.At) {
			r.bad(Example{Says: fmt.Sprintf("entry %d was decided at %d and made T %d, after T was %d", x.Index, x.At, x.T, t), Node: x.Node, Rows: lines(x.row)})
		}
		t = max(t, x.T)
	}
	for _, n := range e.nodes {
		t := int64(0)
		for i := range n.rows {
			switch x := &n.rows[i]; x.Kind {
			case trace.Start:
				t = 0
			case trace.Applied, trace.Restored:
				r.Checked++
				if x.T < t {
					r.bad(Example{Says: fmt.Sprintf("T of %s went from %d to %d", n.node, t, x.T), Node: n.node, Rows: lines(x)})
				}
				t = x.T
			}
		}
	}
	var before *row
	for _, d := range e.agreed() {
		if before != nil && d.row.At < before.At {
			r.bad(Example{Says: fmt.Sprintf("a round was decided at %d after one at %d", d.row.At, before.At), Node: d.row.Node, Rows: lines(before, d.row)})
		}
		before = d.row
	}
	e.realTime(r, "at a later time", func(d *decision) int64 { return d.row.At })
	for term, s := range e.clock.cluster {
		r.Checked++
		if s.lo > s.hi {
			r.bad(Example{
				Says: fmt.Sprintf("in term %d cluster time did not move by elapsed time: less the boot clock it was at least %d and at most %d", term, s.lo, s.hi),
				Node: e.clock.leader[term], Rows: e.rowsAt(term),
			})
		}
	}
}

// rowsAt are the rounds of a term that bound its clock.
func (e *evidence) rowsAt(term uint64) []string {
	var lo, hi *round
	for _, x := range e.rounds {
		if x.row.Term != term {
			continue
		}
		if lo == nil || x.row.At-x.row.Boot > lo.row.At-lo.row.Boot {
			lo = x
		}
		if x.before != nil && (hi == nil || x.row.At-x.before.Boot < hi.row.At-hi.before.Boot) {
			hi = x
		}
	}
	if hi == nil {
		return lines(lo.row)
	}
	return lines(lo.row, hi.before, hi.row)
}

// realTime: of two operations that were decided in rounds, the one that ended before
// the other began has no greater rank.
func (e *evidence) realTime(r *result, how string, rank func(*decision) int64) {
	var begun, ended []*decision
	for _, d := range e.agreed() {
		if d.op != nil && d.op.typ == history.OK {
			begun = append(begun, d)
		}
	}
	ended = append(ended, begun...)
	sort.SliceStable(begun, func(i, j int) bool { return begun[i].op.from() < begun[j].op.from() })
	sort.SliceStable(ended, func(i, j int) bool { return ended[i].op.to() < ended[j].op.to() })
	var top *decision // of the greatest rank among those that ended
	for _, d := range begun {
		r.Checked++
		for len(ended) > 0 && ended[0].op.to() < d.op.from() {
			if top == nil || rank(ended[0]) > rank(top) {
				top = ended[0]
			}
			ended = ended[1:]
		}
		if top != nil && rank(top) > rank(d) {
			r.bad(Example{
				Says: fmt.Sprintf("%s was decided %s than %s, which began after it had ended", top.op, how, d.op),
				Key:  d.op.keyName(), Node: d.row.Node, Events: append(top.op.events(), d.op.events()...), Rows: lines(top.row, d.row),
			})
		}
	}
}
