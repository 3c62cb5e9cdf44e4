package check

import (
	"cmp"
	"slices"

	"limitd/trace"
)

// genesis is the chain of a node that has applied nothing.
var genesis = trace.Hash(0)

// joinEntries finds the entries that took effect. A chain hash stands for a state and
// all that led to it, so the rows "applied" of all nodes and lives are a tree, and
// the newest state of any node is the end of one path: the lineage, the longest of
// them. Whatever else took effect anywhere is forked.
func (e *evidence) joinEntries() {
	byChain := map[string]*entry{}
	for _, n := range e.nodes {
		chain := genesis
		for i := range n.rows {
			r := &n.rows[i]
			switch r.Kind {
			case trace.Start:
				chain = genesis // or what is restored next
			case trace.Restored:
				chain = r.Chain
			case trace.Applied:
				if r.Outcome == "applied" && byChain[r.Chain] == nil {
					byChain[r.Chain] = &entry{row: r, prev: chain}
				}
				chain = r.Chain
			}
		}
	}
	for _, n := range e.nodes {
		if last := n.last(); last != nil {
			if path := pathTo(byChain, last.Chain); len(path) > len(e.lineage) {
				e.lineage = path
			}
		}
	}
	in := map[*entry]bool{}
	for _, x := range e.lineage {
		in[x] = true
		if r := e.byDigest[x.Digest]; r != nil {
			r.entry, x.round = x, r
		}
	}
	for _, x := range byChain {
		if !in[x] {
			e.forked = append(e.forked, x)
		}
	}
	slices.SortFunc(e.forked, func(a, b *entry) int { return cmp.Compare(a.Index, b.Index) })
}

// pathTo is what led to the state with this chain, oldest first.
func pathTo(byChain map[string]*entry, chain string) []*entry {
	var path []*entry
	for len(path) <= len(byChain) { // a circle would be a hash broken, and is cut
		x := byChain[chain]
		if x == nil {
			break
		}
		path = append(path, x)
		chain = x.prev
	}
	slices.Reverse(path)
	return path
}

// last is the row with the node's last state; nil if it has none.
func (n *nodeTrace) last() *row {
	for i := len(n.rows) - 1; i >= 0; i-- {
		if r := &n.rows[i]; r.Kind == trace.Applied || r.Kind == trace.Restored {
			return r
		}
	}
	return nil
}

// upTo is the newest entry of the lineage at or below the index; nil: there is none.
func (e *evidence) upTo(index uint64) *entry {
	i, ok := slices.BinarySearchFunc(e.lineage, index, func(x *entry, i uint64) int { return cmp.Compare(x.Index, i) })
	if !ok {
		i--
	}
	if i < 0 {
		return nil
	}
	return e.lineage[i]
}

// after is the oldest entry of the lineage above the index; nil: there is none.
func (e *evidence) after(index uint64) *entry {
	i, ok := slices.BinarySearchFunc(e.lineage, index, func(x *entry, i uint64) int { return cmp.Compare(x.Index, i) })
	if ok {
		i++
	}
	if i == len(e.lineage) {
		return nil
	}
	return e.lineage[i]
}
