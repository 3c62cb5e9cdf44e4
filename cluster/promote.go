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

// wantsVote says that a non-voter was heard to want a vote. It may have got one and lost
// it since: promote asks again.
func (n *Node) wantsVote(s raft.Server) bool {
	p, ok := n.polledPeer(name(s))
	return ok && p.status.RaftID == string(s.ID) && p.status.WantsVote
}

func (n *Node) promoteOne(id raft.ServerID) error {
	ctx, cancel := n.awake.timeout(changeTime / 2)
	defer cancel()
	return n.makeChange(ctx, Change{Op: ChangePromote, ID: string(id), wanted: true})
}

// wantsVoteAt says that it wants a vote and knows the configuration at index, in which
// it has none: so it is not one that was given and taken back that it wants.
func (s *peerStatus) wantsVoteAt(index uint64) bool {
	return s.WantsVote && s.ConfigCommitted && s.ConfigIndex >= index
}

// caughtUp says what a member lacks of the leader's log and state, nil: nothing that
// matters, and what it tells of itself now.
func (n *Node) caughtUp(s raft.Server) (peerStatus, error) {
	now := n.fsm.Time()
	if why := n.shortOf(s.ID); why != "" {
		return peerStatus{}, fmt.Errorf("%s %s", name(s), why)
	}
	status, err := n.peers.askStatus(string(s.Address), checkEvery)
	if err != nil {
		return status, fmt.Errorf("%s does not tell how far it is: %w", name(s), err)
	}
	if status.Time == 0 {
		return status, fmt.Errorf("%s is not caught up: it has not applied anything yet", name(s))
	}
	if behind := time.Duration(now - status.Time); behind > caughtUpTime {
		return status, fmt.Errorf("%s is not caught up: its state is %s behind, %s is allowed", name(s), behind.Round(time.Millisecond), caughtUpTime)
	}
	return status, nil
}
