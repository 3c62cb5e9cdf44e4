package check

import (
	"fmt"
	"reflect"

	"limitd/trace"
)

// checkReplicas: for every index i and all nodes and lives that have a row for it,
//
//	(term, base, at, digest, outcome, last, T, chain, effects) are equal;
//
// along a node's life indexes grow; an entry took effect only if base is the last
// entry that did; and a restored state is the one that the log makes:
//
//	(last, T, chain) of a snapshot at i = (last, T, chain) after the newest entry of the lineage up to i.
//
// It trusts that nodes write down what they apply.
func checkReplicas(e *evidence, r *result) {
	first := map[uint64]*row{}
	for _, n := range e.nodes {
		at := uint64(0)
		for i := range n.rows {
			x := &n.rows[i]
			switch x.Kind {
			case trace.Start:
				at = 0
			case trace.Restored:
				at = x.Index
				r.Checked++
				e.checkRestored(x, r)
			case trace.Applied:
				r.Checked++
				if x.Index <= at {
					r.bad(Example{Says: fmt.Sprintf("%s applied entry %d after it had the state at index %d", x.Node, x.Index, at), Node: x.Node, Rows: lines(x)})
				}
				at = x.Index
				if f := first[x.Index]; f == nil {
					first[x.Index] = x
				} else if what := differs(f, x); what != "" {
					r.bad(Example{Says: fmt.Sprintf("entry %d: %s differs between %s and %s", x.Index, what, f, x), Node: x.Node, Rows: lines(f, x)})
				}
			}
		}
	}
	last := uint64(0)
	for _, x := range e.lineage {
		if x.Base != last || x.Last != x.Index {
			r.bad(Example{Says: fmt.Sprintf("entry %d took effect, decided on entry %d, though entry %d took effect before it; last became %d", x.Index, x.Base, last, x.Last), Node: x.Node, Rows: lines(x.row)})
		}
		last = x.Index
	}
	for _, x := range e.forked {
		r.bad(Example{Says: fmt.Sprintf("entry %d took effect on %s, and the newest state of the cluster does not follow from it", x.Index, x.Node), Node: x.Node, Rows: lines(x.row)})
	}
	r.figure("hash_mismatches", r.found)
}

// checkRestored compares a snapshot's state with what the log makes.
func (e *evidence) checkRestored(x *row, r *result) {
	chain, last, t := genesis, uint64(0), int64(0)
	if of := e.upTo(x.Index); of != nil {
		chain, last, t = of.Chain, of.Last, of.T
	}
	if x.Chain != chain || x.Last != last || x.T != t {
		r.bad(Example{
			Says: fmt.Sprintf("%s restored a snapshot of index %d with chain %s, last %d, T %d; the log makes chain %s, last %d, T %d", x.Node, x.Index, x.Chain, x.Last, x.T, chain, last, t),
			Node: x.Node, Rows: lines(x),
		})
	}
}

// differs names a field in which two rows of one entry differ; empty: in none.
func differs(a, b *row) string {
	for name, same := range map[string]bool{
		"term": a.Term == b.Term, "base": a.Base == b.Base, "at": a.At == b.At, "digest": a.Digest == b.Digest, "outcome": a.Outcome == b.Outcome,
		"last": a.Last == b.Last, "T": a.T == b.T, "chain": a.Chain == b.Chain, "effects": reflect.DeepEqual(a.Effects, b.Effects),
	} {
		if !same {
			return name
		}
	}
	return ""
}

func lines(rows ...*row) (all []string) {
	for _, r := range rows {
		if r != nil {
			all = append(all, r.String())
		}
	}
	return all
}
