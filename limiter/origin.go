package limiter

import (
	"encoding/binary"

	"limitd/fsm"
)

// Origin is where a decision was made: what a call with Traced is told.
type Origin struct {
	Index uint64 // raft index of the entry that holds its effect, 0: it has none
	Base  uint64 // the batch that it was decided on; 0, as the next three, of an answer from applied state
	Term  uint64
	Round uint64 // counts in the process of the leader
	Seq   uint64 // place in the round, from 0
	Node  string // who decided
}

// trace notes where a call of a round is decided.
func (r *round) trace(c *Call, turn fsm.Turn, seq int) {
	if c.Traced {
		c.Origin = &Origin{Base: turn.Base, Term: turn.Term, Round: r.l.round, Seq: uint64(seq), Node: r.l.cfg.Node}
	}
}

// traceEntry adds the entry that holds what the task's calls of the round have changed.
func (t *task) traceEntry(index uint64) {
	for i := t.next; i < t.upTo; i++ {
		if c := &t.calls[i]; c.Origin != nil && c.changes && !c.Repeated {
			c.Origin.Index = index
		}
	}
}

func appendOrigin(dst []byte, c *Call) []byte {
	o := c.Origin
	if o == nil {
		o = &Origin{}
	}
	for _, n := range [...]uint64{o.Index, o.Base, o.Term, o.Round, o.Seq} {
		dst = binary.AppendUvarint(dst, n)
	}
	return append(appendString(dst, o.Node), oneIf(c.Repeated))
}

func (r *frameReader) origin(c *Call) {
	c.Origin = &Origin{Index: r.uvarint(), Base: r.uvarint(), Term: r.uvarint(), Round: r.uvarint(), Seq: r.uvarint()}
	c.Origin.Node = string(r.key())
	c.Repeated = r.byte() == 1
}
