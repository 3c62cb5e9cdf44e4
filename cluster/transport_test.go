package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
)

// replicate sends b what a leader sends to tell of its commit index.
func replicate(l, b *testNode) <-chan error {
	r := l.raft.Load()
	req := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(l.raftID), Addr: []byte(l.Node.cfg.self().Peer)},
		Term:      r.CurrentTerm(), LeaderCommitIndex: 1,
	}
	done := make(chan error, 1)
	go func() {
		done <- l.trans.AppendEntries(b.serverID(), raft.ServerAddress(b.Node.cfg.self().Peer), req, &raft.AppendEntriesResponse{})
	}()
	return done
}

// Raft would wait for up to 10 s before it replicates to a follower again that was
// away, and that may be the one that makes the majority.
func TestFollowerThatComesBackIsReplicatedToAtOnce(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	back := c.others(l)[0]
	put(t, l, "before")
	term := l.raft.Load().CurrentTerm()
	c.sever(back)
	done := replicate(l, back)
	put(t, l, "meanwhile")
	c.heal()
	if err := <-done; err != nil && l.replicatesTo(back.serverID(), raft.ServerAddress(back.Node.cfg.self().Peer), term) {
		t.Errorf("raft was told of the failure, and waits: %v", err)
	}
	c.converge()
}

func TestReplicationThatIsOfNoUseAnyMoreEnds(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "before")
	away := c.others(l)[0]
	c.sever(l) // from both: it will not lead for long
	done := replicate(l, away)
	put(t, c.leader(l), "meanwhile")
	if err := <-done; err == nil {
		t.Error("a request came through though the link was cut")
	}
	c.heal()
	c.converge()
}
