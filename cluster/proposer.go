package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// errNotLeading says that this node cannot decide now.
var errNotLeading = errors.New("this node does not lead")

// errClosed says that the node was closed.
var errClosed = errors.New("the node is closed")

// Begin waits until no batch is in flight and takes the turn to decide on the
// applied state. An error says that this node cannot decide now; then there is no
// turn to end. Commit or Abort ends the turn.
func (n *Node) Begin() (fsm.Turn, error) {
	if !n.Leading() {
		return fsm.Turn{}, errNotLeading
	}
	select {
	case n.turn <- struct{}{}:
	case <-n.stopping:
		return fsm.Turn{}, errClosed
	case <-n.halted:
		return fsm.Turn{}, errNotLeading
	}
	l := n.reign()
	if l == nil {
		n.endTurn()
		return fsm.Turn{}, errNotLeading
	}
	n.turnTerm = l.term
	return n.turnOf(l), nil
}

// turnOf is what a batch of leadership l is decided on. Nothing may be in flight.
func (n *Node) turnOf(l *leadership) fsm.Turn {
	s := n.fsm.State()
	return fsm.Turn{Base: s.Last, Term: l.term, At: n.batchTime(l, s.T), Version: n.writes().entry}
}

// Commit proposes the entry and returns, ending the turn, when it is applied here
// or has failed. The entry belongs to raft from now on. The index is the entry's,
// if it was applied.
func (n *Node) Commit(entry []byte) (uint64, fsm.Outcome) {
	defer n.endTurn()
	return n.propose(n.turnTerm, entry)
}

// Abort ends the turn; nothing is proposed.
func (n *Node) Abort() { n.endTurn() }

func (n *Node) endTurn() { <-n.turn }

// propose puts the entry into the log and waits. The caller holds the turn, and
// keeps it until raft has said what became of the entry: a batch that is decided
// while another one's outcome is open would be decided on a guess.
func (n *Node) propose(term uint64, entry []byte) (uint64, fsm.Outcome) {
	r := n.raft.Load()
	if r.CurrentTerm() != term {
		return 0, fsm.Refused // decided under another leadership
	}
	f := r.Apply(entry, n.cfg.Heartbeat)
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		if err != nil {
			n.noteRefusal(err)
			return 0, outcomeOf(err)
		}
	case <-n.stopping: // raft does not answer all futures when it shuts down
		return 0, fsm.Unknown
	case <-n.halted:
		return 0, fsm.Unknown
	}
	n.noteRefusal(nil)
	res, ok := f.Response().(fsm.Result)
	if !ok || res.Err != nil {
		return 0, fsm.Unknown
	}
	if res.Outcome == fsm.Applied {
		n.committed.Store(n.clock.Boot())
	}
	return f.Index(), res.Outcome
}

// outcomeOf says what an error of raft's Apply leaves open. Only these three are
// certain not to have put the entry into the log.
func outcomeOf(err error) fsm.Outcome {
	for _, certain := range []error{raft.ErrNotLeader, raft.ErrEnqueueTimeout, raft.ErrLeadershipTransferInProgress} {
		if errors.Is(err, certain) {
			return fsm.Refused
		}
	}
	return fsm.Unknown
}

const (
	// tickEvery is how often an idle leader proposes a batch without effects: it
	// keeps the receipts fresh that the next leader's clock will start from, and
	// tries the way of a write.
	tickEvery = 5 * time.Second
	// writesDead is the time of how many of them a leader goes on without a success.
	writesDead = 6
)

// tick proposes an empty batch if nothing was committed for a while.
func (n *Node) tick() {
	l := n.reign()
	if l == nil {
		return
	}
	quiet := n.clock.Boot() - max(n.committed.Load(), l.since)
	if quiet < int64(tickEvery) {
		return
	}
	turn, err := n.Begin()
	if err != nil {
		return
	}
	n.Commit(fsm.AppendEntry(nil, turn, nil))
}
