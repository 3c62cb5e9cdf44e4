package cluster

import (
	"context"
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
}

// ErrRemoved is why a node that is no member of the cluster any more is to stop
// (see Config.Removed).
var ErrRemoved = errors.New("removed from the cluster")

// ErrNotNow is wrapped by errors of Change that pass: nothing was changed, and the same
// change may succeed when it is asked for again (no leader is known, the leader
// changed meanwhile, another change is under way).
var ErrNotNow = errors.New("try again in a moment")

// changeTime is for how long the node that is asked for a change tries.
const changeTime = 10 * time.Second

// Change makes the change and returns when it is committed, on whatever node it is
// asked for: the leader makes it. A change that is made already is no error, but to
// remove an id that is no member's is one. An error says why nothing was changed,
// or that it is not known and how to see.
//
// The leader changes and transfers end, so a change is tried again until it is done
// or refused, for about 10 s. A transfer is tried once: it would ask the next leader
// to hand over too.
func (n *Node) Change(c Change) error {
	switch c.Op {
	case ChangeTransfer:
		_, err := n.changeOnce(changeOrder{Change: c}, n.transferTime())
		return err
	case ChangeLeave:
		c.Op, c.ID = ChangeRemove, n.raftID
	case ChangeJoin, ChangePromote, ChangeDemote, ChangeRemove:
	default:
		return fmt.Errorf("unknown change %.40q of the membership", string(c.Op))
	}
	if err := n.checkChange(&c); err != nil {
		return err
	}
	ctx, cancel := n.awake.timeout(changeTime)
	defer cancel()
	return n.changeUntil(ctx, changeOrder{Change: c}, time.Now().Add(changeTime))
}

// Transfer hands the leadership to the node with this id, or to any voter that is
// caught up if id is "". A node that does not lead asks the leader to.
func (n *Node) Transfer(id string) error { return n.Change(Change{Op: ChangeTransfer, ID: id}) }

// changeOrder is a change as the node that was asked gives it to the leader.
type changeOrder struct {
	Change
	// Again says that the same was ordered before and it is not known what became
	// of it: to remove what is no member is no error then.
	Again bool `json:"again,omitempty"`
}

// changeUntil gives the order to whoever leads until it is done, refused, or ctx ends.
func (n *Node) changeUntil(ctx context.Context, o changeOrder, end time.Time) error {
	for {
		v, err := n.changeOnce(o, time.Until(end))
		o.Again = o.Again || v == changeInDoubt
		if v != changeLater && v != changeInDoubt {
			return err
		}
		select {
		case <-ctx.Done():
		case <-n.stopping:
		case <-time.After(n.cfg.Heartbeat / 4):
			continue
		}
		if o.Again && o.Op != ChangeJoin { // a join may be repeated as it is
			return fmt.Errorf("it is not known whether this was done (%v): see `limitd cluster nodes`", err)
		}
		return err
	}
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

// changeOnce gives the order to the leader once.
func (n *Node) changeOnce(o changeOrder, left time.Duration) (changeVerdict, error) {
	err := n.orderChange(o, left)
	return verdictOf(err), err
}

func (n *Node) orderChange(o changeOrder, left time.Duration) error {
	leader, addr := n.leader()
	switch leader {
	case "":
		n.AwaitLeader(min(left, n.cfg.Election))
		return passing("no leader is known")
	case n.serverID():
		ctx, cancel := n.awake.timeout(left)
		defer cancel()
		return n.makeChange(ctx, o)
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	reply, outcome := n.peers.call(addr, kindChange, b, left)
	switch {
	case outcome == fsm.Refused:
		return passing(fmt.Sprintf("%s, the leader, was not reached, or does not lead any more", nodeID(string(leader))))
	case outcome != fsm.Applied || len(reply) == 0 || reply[0] > byte(changeInDoubt):
		return &verdictError{changeInDoubt, fmt.Errorf("%s, the leader, did not answer", nodeID(string(leader)))}
	case reply[0] != byte(changeDone):
		return &verdictError{changeVerdict(reply[0]), errors.New(string(reply[1:]))}
	}
	return nil
}

// answerChange handles kindChange: a changeOrder as JSON in; its verdict out, and
// for all but changeDone the reason in words.
func (n *Node) answerChange(payload []byte, timeout time.Duration, reply func([]byte)) {
	var o changeOrder
	if err := json.Unmarshal(payload, &o); err != nil {
		reply(append([]byte{byte(changeRefused)}, "damaged order of a change: "+err.Error()...))
		return
	}
	n.background.Go(func() {
		if leader, _ := n.leader(); leader != n.serverID() {
			reply(nil)
			return
		}
		ctx, cancel := n.awake.timeout(timeout * 9 / 10) // the answer must arrive before the caller gives up
		defer cancel()
		err := n.makeChange(ctx, o)
		if err == nil {
			reply([]byte{byte(changeDone)})
			return
		}
		reply(append([]byte{byte(verdictOf(err))}, err.Error()...))
	})
}

// checkChange says what is wrong with a change before anybody is asked, and makes a
// node id the raft id that this node knows: the member that is meant is the one that
// the operator saw, also when the order is repeated.
func (n *Node) checkChange(c *Change) error {
	if c.ID == "" {
		return fmt.Errorf("%s: no node is named", c.Op)
	}
	if c.Op == ChangeJoin {
		return n.checkPeerAddress(c.Peer)
	}
	if s, ok := findServer(n.configuration().Servers, c.ID); ok {
		c.ID = string(s.ID)
	}
	return nil
}

// findServer finds a member by its raft id or its node id.
func findServer(servers []raft.Server, id string) (raft.Server, bool) {
	for _, s := range servers {
		if string(s.ID) == id || nodeID(string(s.ID)) == id {
			return s, true
		}
	}
	return raft.Server{}, false
}
