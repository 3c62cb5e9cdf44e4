package check

import (
	"fmt"

	"limitd/jepsen/history"
)

// checkDurability: for every acknowledged operation o that changed state,
//
//	o is in an entry that took effect, and that entry is in the history of the last state of every node
//
// that is a member at the end (of a majority of all nodes, if the run names no
// members). A chain hash stands for a state's history, so a node that restored a
// snapshot is asked as one that replayed its log: its last chain must be the one
// that the lineage has at its last index, and that index must reach the entry.
//
// It trusts that nodes write down what they apply, and that replicas holds. A power
// cut takes what was not synced from the node, and not from its trace.
func checkDurability(e *evidence, r *result) {
	members := e.run.Members
	least := len(members)
	if least == 0 {
		members, least = e.run.Nodes, len(e.run.Nodes)/2+1
	}
	var ends []*row // last states that are in the lineage
	for _, name := range members {
		n := e.node(name)
		if n == nil || n.last() == nil {
			continue
		}
		last := n.last()
		chain := genesis
		if of := e.upTo(last.Index); of != nil {
			chain = of.Chain
		}
		if last.Chain == chain {
			ends = append(ends, last)
		}
	}
	lost := int64(0)
	for _, o := range e.ops {
		if o.typ != history.OK || !o.changed() || o.invoke.Tag == 0 {
			continue
		}
		r.Checked++
		d := e.effectOf(o)
		if d == nil {
			lost++
			r.bad(Example{Says: fmt.Sprintf("%s; but no entry that is in force at the end has it", o), Key: o.keyName(), Node: o.invoke.Node, Events: o.events(), Rows: e.rowsOf(o)})
			continue
		}
		have := 0
		for _, end := range ends {
			if end.Index >= d.round.entry.Index {
				have++
			}
		}
		if have < least {
			lost++
			r.bad(Example{Says: fmt.Sprintf("%s; entry %d has it, and at the end %d of %v have that entry, not %d", o, d.round.entry.Index, have, members, least), Key: o.keyName(), Node: o.invoke.Node, Events: o.events(), Rows: e.rowsOf(o)})
		}
	}
	r.figure("admissions_lost", lost)
}

// changed says that the operation, if answered so, changed state for certain.
func (o *op) changed() bool {
	switch {
	case o.odd != "":
		return false
	case o.verb == throttle:
		return o.admitted() || o.call.Cost < 0
	}
	return o.verb == reset || o.verb == flush || o.verb == flushAll
}

// effectOf is the decision about the operation that took effect; nil: none did.
func (e *evidence) effectOf(o *op) *decision {
	for _, d := range e.byDecided[o.invoke.Tag] {
		if d.tookEffect() && d.changes() {
			return d
		}
	}
	return nil
}

// rowsOf are the rows that have the operation: all of its rounds too that came to nothing.
func (e *evidence) rowsOf(o *op) (all []string) {
	for _, x := range e.rounds {
		for i := range x.row.Calls {
			if x.row.Calls[i].Tag == o.invoke.Tag {
				all = append(all, lines(x.row, x.outcome)...)
				if x.entry != nil {
					all = append(all, x.entry.String())
				}
			}
		}
	}
	for _, d := range e.byDecided[o.invoke.Tag] {
		if d.local != nil {
			all = append(all, d.row.String())
		}
	}
	return all
}

func (o *op) keyName() string {
	if len(o.keys) == 0 {
		return ""
	}
	return o.keys[0].String()
}

func (e *evidence) node(name string) *nodeTrace {
	for _, n := range e.nodes {
		if n.node == name {
			return n
		}
	}
	return nil
}
