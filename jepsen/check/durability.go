package check

import (
	"fmt"

	"limitd/jepsen/check/model"
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
	all := len(members) > 0
	if !all {
		members = e.run.Nodes
	}
	reached := map[string]uint64{} // index up to which the node has the lineage at the end
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
			reached[name] = last.Index
		}
	}
	lost, blamed := int64(0), map[string]bool{}
	bad := func(o *op, node, says string) {
		r.bad(Example{Says: says, Key: o.keyName(), Node: node, Events: o.events(), Rows: e.rowsOf(o)})
	}
	for _, o := range e.ops {
		if o.typ != history.OK || !o.changed() || o.invoke.Tag == 0 {
			continue
		}
		r.Checked++
		d := e.effectOf(o)
		if d == nil {
			lost++
			bad(o, o.invoke.Node, fmt.Sprintf("%s; but no entry that is in force at the end has it", o))
			continue
		}
		have := 0
		for _, name := range members {
			switch {
			case reached[name] >= d.round.entry.Index:
				have++
			case all && !blamed[name]:
				blamed[name] = true // once for each node
				bad(o, name, fmt.Sprintf("%s; entry %d has it, and %s, a member, does not have that entry at the end", o, d.round.entry.Index, name))
			}
		}
		if have <= len(members)/2 {
			lost++
			bad(o, o.invoke.Node, fmt.Sprintf("%s; entry %d has it, and at the end only %d of %v have that entry", o, d.round.entry.Index, have, members))
		}
	}
	r.figure("admissions_lost", lost)
}

// changed says that the operation, if answered so, changed state for certain.
func (o *op) changed() bool {
	switch {
	case o.odd != "":
		return false
	case len(o.parts) > 0:
		return o.admitted() || o.refunds()
	}
	return o.verb == reset || o.verb == flush || o.verb == flushAll
}

// effectOf is the decision that took effect about the operation, or about an earlier call
// under its ID if it was answered as that one; nil: none did.
func (e *evidence) effectOf(o *op) *decision {
	repeated := false
	for _, d := range e.byDecided[o.invoke.Tag] {
		if d.tookEffect() && d.changes() {
			return d
		}
		repeated = repeated || d.call.Repeated
	}
	if !repeated {
		return nil
	}
	for _, d := range e.byID[model.ID{NS: uint8(o.invoke.NS), Token: o.id}] {
		if d.tookEffect() && d.charges() && o.asks(d) {
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
