package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// A non-voter gets its vote when it would not hold anybody up.
const (
	caughtUpEntries = 1000        // of the log that it may lack
	caughtUpTime    = time.Second // of cluster time by which its state may be behind
)

// promoteCaughtUp gives their votes to the non-voters that want them. That a member
// wants one is kept by itself (joining.go): so a change of the leader loses nothing,
// and a member that was demoted stays so.
func (n *Node) promoteCaughtUp() {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	said := map[raft.ServerID]string{} // why it has no vote yet, as the log was told
	for {
		select {
		case <-n.stopping:
			return
		case <-t.C:
		}
		if !n.Leading() {
			clear(said)
			continue
		}
		for _, s := range n.committedConfiguration().servers {
			if s.Suffrage == raft.Voter || !n.wantsVote(s) {
				continue
			}
			err := n.promoteOne(s.ID)
			switch {
			case err == nil:
				n.log.Info("a member has got its vote", "peer", s.ID)
				delete(said, s.ID)
			case !errors.Is(err, ErrNotNow) && said[s.ID] != err.Error():
				n.log.Info("a member has no vote yet", "peer", s.ID, "reason", err)
				said[s.ID] = err.Error()
			}
		}
	}
}

// wantsVote says that a non-voter was heard to want a vote.
func (n *Node) wantsVote(s raft.Server) bool {
	p, ok := n.polledPeer(name(s))
	return ok && p.status.RaftID == string(s.ID) && p.status.WantsVote
}

func (n *Node) promoteOne(id raft.ServerID) error {
	ctx, cancel := n.awake.timeout(changeTime / 2)
	defer cancel()
	return n.makeChange(ctx, Change{Op: ChangePromote, ID: string(id)})
}

// caughtUp says what a member lacks of the leader's log and state, nil: nothing that matters.
func (n *Node) caughtUp(s raft.Server) error {
	now := n.fsm.Time()
	if why := n.shortOf(s.ID); why != "" {
		return fmt.Errorf("%s %s", name(s), why)
	}
	status, err := n.peers.askStatus(string(s.Address), checkEvery)
	if err != nil {
		return fmt.Errorf("%s does not tell how far it is: %w", name(s), err)
	}
	if behind := time.Duration(now - status.Time); behind > caughtUpTime {
		return fmt.Errorf("%s is not caught up: its state is %s behind, %s is allowed", name(s), behind.Round(time.Millisecond), caughtUpTime)
	}
	return nil
}
