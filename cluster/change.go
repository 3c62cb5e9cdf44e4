package cluster

import "errors"

// ChangeOp is what a [Change] does.
type ChangeOp string

const (
	ChangeJoin     ChangeOp = "join"     // a node that waits with an empty log becomes a non-voter, and a voter once it is caught up
	ChangePromote  ChangeOp = "promote"  // a non-voter that is caught up gets its vote
	ChangeDemote   ChangeOp = "demote"   // a voter becomes a non-voter, and stays one
	ChangeRemove   ChangeOp = "remove"   // a member is none any more; a leader hands over first
	ChangeLeave    ChangeOp = "leave"    // the node that is asked removes itself
	ChangeTransfer ChangeOp = "transfer" // the leadership goes to a voter
)

// Change is a change of the membership, as an operator asks for it on any node.
type Change struct {
	Op       ChangeOp
	ID       string // node id or raft id; Leave: empty; Transfer: empty is any voter that is caught up
	Peer     string // Join only: the peer address at which the node waits
	NonVoter bool   // Join only: it stays a non-voter until it is promoted
	Force    bool   // Promote, Demote, Remove, Leave: though the quorum may be lost
}

// ErrRemoved is why a node that is no member of the cluster any more is to stop
// (see Config.Removed).
var ErrRemoved = errors.New("removed from the cluster")

// ErrNotNow is wrapped by errors of Change that pass: nothing was changed, and the same
// change may succeed when it is asked for again (no leader is known, the leader
// changed meanwhile, another change is under way).
var ErrNotNow = errors.New("try again in a moment")

// Change makes the change and returns when it is committed, on whatever node it is
// asked for: the leader makes it. A change that is made already is no error. An
// error says why nothing was changed, or that it is not known and how to see.
func (n *Node) Change(c Change) error {
	if c.Op == ChangeTransfer {
		return n.Transfer(c.ID)
	}
	return errors.New("STUB")
}
