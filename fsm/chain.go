package fsm

import "github.com/dchest/siphash"

// HashPoint is the chain hash at a raft index.
type HashPoint struct {
	Index uint64
	Hash  uint64
}

const (
	pointEvery = 256 // indexes
	pointsKept = 64
)

// link adds an entry that took effect to the chain. Nodes whose chains are equal
// at an index have applied the same entries at the same indexes.
func link(chain, index uint64, entry []byte) uint64 {
	return siphash.Hash(chain, index, entry)
}

// points remembers the chain at the last multiples of 256, so that nodes that
// are busy, and never at the same index when asked, can be compared.
type points struct {
	kept []HashPoint
	next uint64 // the first multiple that is not passed
}

// startAt forgets all: the chain is known from index on.
func (p *points) startAt(index, chain uint64) {
	*p = points{next: max(pointEvery, (index+pointEvery-1)/pointEvery*pointEvery)}
	p.pass(index, chain)
}

// pass notes that the chain has this value from the last applied index to
// upTo. The indexes between belong to entries of raft that never come here.
func (p *points) pass(upTo, chain uint64) {
	if p.next <= upTo && (upTo-p.next)/pointEvery > pointsKept {
		p.next = upTo/pointEvery*pointEvery - pointsKept*pointEvery
	}
	for ; p.next <= upTo; p.next += pointEvery {
		if len(p.kept) == pointsKept {
			copy(p.kept, p.kept[1:])
			p.kept = p.kept[:pointsKept-1]
		}
		p.kept = append(p.kept, HashPoint{p.next, chain})
	}
}
