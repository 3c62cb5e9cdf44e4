package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

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
	Op       ChangeOp `json:"op"`
	ID       string   `json:"id,omitempty"`        // node id or raft id; Leave: empty; Transfer: empty is any voter that is caught up
	Peer     string   `json:"peer,omitempty"`      // Join only: the peer address at which the node waits
	NonVoter bool     `json:"non_voter,omitempty"` // Join only: it stays a non-voter until it is promoted
	Force    bool     `json:"force,omitempty"`     // Promote, Demote, Remove, Leave: though the quorum may be lost

	wanted bool // Promote only: as far as the member itself wants its vote
}

// ErrRemoved is why a node that is no member of the cluster any more is to stop
// (see Config.Removed).
var ErrRemoved = errors.New("removed from the cluster")

// ErrNotNow is wrapped by errors of Change that pass: nothing was changed, and the same
// change may succeed when it is asked for again (no leader is known, the leader
// changed meanwhile, another change is under way).
var ErrNotNow = errors.New("try again in a moment")

const (
	changeTime  = 10 * time.Second // for so long the node that is asked for a change tries
	attemptTime = changeTime / 2   // for so long it waits for one leader: another one may have been elected
)

// Change makes the change and returns when it is committed, on whatever node it is
// asked for: the leader makes it. A change that is made already is no error. An
// error says why nothing was changed, or that it is not known and how to see.
//
// Leaders change and transfers end, so a change is tried again until it is done or
// refused, for about 10 s. A transfer is done when another node leads than at first.
func (n *Node) Change(c Change) error {
	if n.raft.Load() == nil {
		return notNow("this node is in no cluster yet: %w", ErrNotNow)
	}
	if err := n.checkChange(&c); err != nil {
		return err
	}
	ctx, cancel := n.awake.timeout(changeTime)
	defer cancel()
	end := time.Now().Add(changeTime)
	first, _ := n.leader()
	inDoubt := false
	for {
		err := n.order(c, min(attemptTime, time.Until(end)))
		switch verdictOf(err) {
		case changeLater:
		case changeInDoubt:
			inDoubt = true
		default:
			return err
		}
		select {
		case <-ctx.Done():
		case <-n.stopping:
		case <-time.After(n.cfg.Heartbeat / 4):
			if now, _ := n.leader(); c.Op == ChangeTransfer && c.ID == "" && now != "" && now != first {
				return nil
			}
			continue
		}
		if inDoubt && c.Op != ChangeJoin { // a join may be asked for again as it is
			return fmt.Errorf("it is not known whether this was done (%v): see `limitd cluster nodes`", err)
		}
		return err
	}
}

// Transfer hands the leadership to the node with this id, or to any voter that is
// caught up if id is "". A node that does not lead asks the leader to.
func (n *Node) Transfer(id string) error { return n.Change(Change{Op: ChangeTransfer, ID: id}) }

// checkChange says what is wrong with a change before anybody is asked, and makes a
// node id the raft id that this node knows: the member that is meant is the one that
// the operator saw, also when the order is repeated.
func (n *Node) checkChange(c *Change) error {
	switch c.Op {
	case ChangeJoin:
		if c.ID == "" {
			return errors.New("join: no node is named")
		}
		return n.checkPeerAddress(c.Peer)
	case ChangeLeave:
		c.Op, c.ID = ChangeRemove, n.raftID
		return nil
	case ChangeTransfer:
		return nil
	case ChangePromote, ChangeDemote, ChangeRemove:
	default:
		return fmt.Errorf("unknown change %.40q of the membership", string(c.Op))
	}
	if c.ID == "" {
		return fmt.Errorf("%s: no node is named", c.Op)
	}
	if s, ok := findServer(n.configuration().Servers, c.ID); ok {
		c.ID = string(s.ID)
	}
	return nil
}

// findServer finds a member by its raft id or its node id.
func findServer(servers []raft.Server, id string) (raft.Server, bool) {
	for _, s := range servers {
		if id != "" && (string(s.ID) == id || name(s) == id) {
			return s, true
		}
	}
	return raft.Server{}, false
}

// order gives the change to the leader once.
func (n *Node) order(c Change, left time.Duration) error {
	leader, addr := n.leader()
	switch leader {
	case "":
		n.AwaitLeader(min(left, n.cfg.Election))
		return passing("no leader is known")
	case n.serverID():
		ctx, cancel := n.awake.timeout(left)
		defer cancel()
		return n.makeChange(ctx, c)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	reply, o := n.peers.call(addr, kindChange, b, left)
	who := nodeID(string(leader)) + ", the leader,"
	switch {
	case o == fsm.Refused:
		return passing(who + " was not reached, or does not lead any more")
	case o != fsm.Applied || len(reply) == 0 || reply[0] > byte(changeInDoubt):
		return &verdictError{changeInDoubt, errors.New(who + " did not answer")}
	case reply[0] != byte(changeDone):
		return &verdictError{changeVerdict(reply[0]), errors.New(string(reply[1:]))}
	}
	return nil
}

// answerChange handles kindChange: a Change as JSON in; its verdict out, and the
// reason in words if that is not changeDone.
func (n *Node) answerChange(payload []byte, timeout time.Duration, reply func([]byte)) {
	n.background.Go(func() {
		if leader, _ := n.leader(); leader != n.serverID() {
			reply(nil)
			return
		}
		ctx, cancel := n.awake.timeout(timeout * 9 / 10) // the answer must arrive before the caller gives up
		defer cancel()
		var c Change
		err := json.Unmarshal(payload, &c)
		if err == nil {
			err = n.makeChange(ctx, c)
		}
		if err == nil {
			reply([]byte{byte(changeDone)})
			return
		}
		reply(append([]byte{byte(verdictOf(err))}, err.Error()...))
	})
}

// changeVerdict says what became of an order. The numbers are on the wire.
type changeVerdict uint8

const (
	changeDone    changeVerdict = 0
	changeRefused changeVerdict = 1 // nothing was changed, for a reason that stays
	changeNotNow  changeVerdict = 2 // nothing was changed, for a reason that passes
	changeLater   changeVerdict = 3 // the same, and it passes within seconds
	changeInDoubt changeVerdict = 4 // it may have been made
)

// verdictError is the error of an order, with what it means.
type verdictError struct {
	verdict changeVerdict
	err     error
}

func (e *verdictError) Error() string { return e.err.Error() }

func (e *verdictError) Unwrap() []error {
	if e.verdict == changeRefused {
		return []error{e.err}
	}
	return []error{e.err, ErrNotNow}
}

// passing is an error of a change for a reason that passes within seconds.
func passing(reason string) error {
	return &verdictError{changeLater, fmt.Errorf("%s: %w", reason, ErrNotNow)}
}

// notNow is an error of a change for a reason that passes when somebody does something.
func notNow(format string, args ...any) error {
	return &verdictError{changeNotNow, fmt.Errorf(format, args...)}
}

// verdictOf is what an error of a change means.
func verdictOf(err error) changeVerdict {
	var v *verdictError
	switch {
	case err == nil:
		return changeDone
	case errors.As(err, &v):
		return v.verdict
	}
	return changeRefused
}
