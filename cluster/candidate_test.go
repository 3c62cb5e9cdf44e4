package cluster

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// Of four voters one was away when the fourth got its vote, and when the second
// was removed. Of the three that are left the leader dies: the two others have never
// heard of each other as voters.
func TestNodeThatLagsBehindVotesForAMemberThatIsNewToIt(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	leader := c.leader()
	behind, second := c.others(leader)[0], c.others(leader)[1]
	put(t, leader, "before")
	eventually(t, "the one that will lag to have a log", func() bool { return has(behind, "before") })
	behind.Close()

	fresh := c.newcomer("n4")
	c.start(fresh)
	eventually(t, "n4 to have a vote", func() bool { return fresh.voters() == 4 && fresh.role() == "follower" })
	c.change(leader, Change{Op: ChangeRemove, ID: second.cfg.ID})
	put(t, leader, "after")
	eventually(t, "n4 to have all", func() bool { return has(fresh, "after") })
	second.Close()
	leader.Close()

	c.start(behind)
	c.leader(leader, second)
	eventually(t, "the one that lagged to have all", func() bool { return has(behind, "after") })
}

// The order to lead may be old, or of a leader that knows of a vote that was taken back.
func TestNodeWithoutAVoteIsNotToldToLead(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	n4 := c.newcomer("n4", func(cfg *Config) { cfg.NonVoter = true })
	c.start(n4)
	eventually(t, "n4 to follow", func() bool { return n4.raft.Load() != nil && n4.role() == "nonvoter" })
	term := l.raft.Load().CurrentTerm()
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(l.raftID), Addr: []byte(l.Node.cfg.self().Peer)}}
	err := l.trans.TimeoutNow(n4.serverID(), raft.ServerAddress(n4.Node.cfg.self().Peer), req, &raft.TimeoutNowResponse{})
	if err == nil || !strings.Contains(err.Error(), "no vote") {
		t.Errorf("it takes the order: %v", err)
	}
	if r := n4.raft.Load(); r.State() != raft.Follower {
		t.Errorf("it is a %s in term %d, the term was %d", r.State(), r.CurrentTerm(), term)
	}
}
