package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"limitd/mutant"
)

// closeEnough is how many entries a voter may lack to be handed the leadership.
const closeEnough = 64

// transferTime bounds a whole transfer.
func (n *Node) transferTime() time.Duration { return 4*n.cfg.Election + time.Second }

// handOver makes another voter the leader. While it goes on this node neither
// decides nor answers from its state: the other one may lead any moment.
func (n *Node) handOver(id string) error {
	if !n.transferring.CompareAndSwap(false, true) {
		return passing("a leadership transfer is under way")
	}
	defer n.leaderNews.announce()
	defer n.transferring.Store(false)
	if wait := n.rest(); wait > 0 {
		return passing(fmt.Sprintf("a leadership transfer has just ended: another one may begin in %s", wait.Round(10*time.Millisecond)))
	}
	to, err := n.successor(id)
	if err != nil {
		return err
	}
	if to.ID == n.serverID() {
		return nil
	}
	ctx, cancel := n.awake.timeout(n.transferTime())
	defer cancel()
	select { // what is in flight shall be answered by this node
	case n.turn <- struct{}{}:
		defer n.endTurn()
	case <-ctx.Done():
		return passing("a batch in flight did not end")
	case <-n.stopping:
		return errClosed
	}
	defer func() { n.transferred.Store(n.clock.Boot()) }()

	r := n.raft.Load()
	err = n.await(ctx, r.LeadershipTransferToServer(to.ID, to.Address))
	if errors.Is(err, context.Canceled) { // only by its end
		n.fatal(errors.New("a leadership transfer does not end: raft refuses writes until the process is started again"))
		return err
	}
	if err != nil {
		err = passing(fmt.Sprintf("the leadership did not go to %s: %v", nodeID(string(to.ID)), err))
	}
	return err
}

// rest is for how long this node hands over to nobody because it has just done so, 0:
// it may.
func (n *Node) rest() time.Duration {
	at := n.transferred.Load()
	if at == 0 || mutant.On("transfer-without-guard") {
		return 0
	}
	return max(2*n.cfg.Election-time.Duration(n.clock.Boot()-at), 0)
}

// successor picks whom to hand over to.
func (n *Node) successor(id string) (raft.Server, error) {
	r := n.raft.Load()
	term, last, boot := r.CurrentTerm(), r.LastIndex(), n.clock.Boot()
	var best raft.Server
	var bestMatch uint64
	for _, s := range n.configuration().Servers {
		name := nodeID(string(s.ID))
		if id != "" && name != id && string(s.ID) != id {
			continue
		}
		if s.ID == n.serverID() {
			if id != "" {
				return s, nil
			}
			continue
		}
		ack, ok := n.acks.peer(s.ID, term)
		var err error
		switch {
		case s.Suffrage != raft.Voter:
			err = fmt.Errorf("%s has no vote", name)
		case mutant.On("transfer-without-guard"):
			best = s
		case !ok || boot-ack.sent > int64(n.cfg.Heartbeat):
			err = fmt.Errorf("%s does not answer", name)
		case ack.match+closeEnough < last:
			err = fmt.Errorf("%s lacks %d entries of the log", name, last-ack.match)
		case best.ID == "" || ack.match > bestMatch:
			best, bestMatch = s, ack.match
		}
		if id != "" && err != nil {
			return raft.Server{}, fmt.Errorf("leadership cannot go to %w", err)
		}
	}
	if best.ID == "" {
		if id != "" {
			return raft.Server{}, fmt.Errorf("%s is no member of the cluster", id)
		}
		return raft.Server{}, notNow("there is no other voter that answers and is caught up")
	}
	return best, nil
}

// noteRefusal watches for writes that raft refuses because of a transfer. Its flag
// can stay set for ever when leadership is lost in the middle of one; only a new
// process clears it then.
func (n *Node) noteRefusal(err error) {
	now := n.awake.ran.Load() + 1 // 0: not refused
	if !errors.Is(err, raft.ErrLeadershipTransferInProgress) || mutant.On("transfer-without-guard") {
		n.refusedSince.Store(0)
		return
	}
	if n.refusedSince.CompareAndSwap(0, now) || n.transferring.Load() {
		return
	}
	if now-n.refusedSince.Load() > 2*int64(n.cfg.Election) {
		n.fatal(errors.New("raft refuses writes because of a leadership transfer that is long over: the process must be started again"))
	}
}
