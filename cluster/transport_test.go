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
	term, at := l.raft.Load().CurrentTerm(), raft.ServerAddress(back.Node.cfg.self().Peer)
	c.sever(back)
	eventually(t, "the leader to miss it", func() bool { return !l.inContact(back.serverID(), term) })
	done := replicate(l, back)
	put(t, l, "meanwhile")
	select {
	case err := <-done:
		if l.replicatesTo(back.serverID(), at, term) {
			t.Errorf("raft hears at each attempt that there is no contact, and waits longer after each: %v", err)
		}
	default:
		c.heal()
		<-done
		if l.replicatesTo(back.serverID(), at, term) && !l.inContact(back.serverID(), term) {
			t.Error("raft is to replicate again though there is no contact")
		}
	}
	c.heal()
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
