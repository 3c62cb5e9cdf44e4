package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
)

// A node that is removed before it has heard of its own membership never sees a
// configuration with itself in it.
func TestNodeThatIsRemovedOnItsWayInIsTold(t *testing.T) {
	t.Parallel()
	says := func(index uint64, servers ...string) []bootAnswer {
		s := memberOf(id2, index, servers...)
		return []bootAnswer{{status: &s}}
	}
	arriving := func(t *testing.T) *testNode {
		n := newTestCluster(t, 1).nodes[0]
		var err error
		if n.Node, err = Open(n.cfg, nil); err != nil {
			t.Fatal(err)
		}
		if err := n.joining.set(joinsAsVoter); err != nil {
			t.Fatal(err)
		}
		n.configs.noteCommitted(n.serverID(), 1, []raft.Server{{ID: id2}, {ID: id3}}) // the oldest of the log
		return n
	}
	t.Run("another node had told it that it was a member", func(t *testing.T) {
		n := arriving(t)
		n.judgeMembership(says(9, id2, id3, n.raftID))
		n.judgeMembership(says(8, id2, id3)) // of one that lags behind
		n.configs.noteCommitted(n.serverID(), 5, []raft.Server{{ID: id2}})
		if n.judgeOwnConfiguration(); n.removedReason() != nil {
			t.Fatalf("by what is older: %v", n.removedReason())
		}
		n.judgeMembership(says(10, id2, id3))
		n.awaitRemoved("configuration 10")
	})
	t.Run("nobody had", func(t *testing.T) {
		n := arriving(t)
		n.judgeMembership(says(9, id2, id3))
		n.awake.ran.Add(int64(removedAfter) / 2)
		n.judgeMembership(says(9, id2, id3))
		if n.removedReason() != nil {
			t.Fatalf("too soon: %v", n.removedReason())
		}
		n.awake.ran.Add(int64(removedAfter))
		n.judgeMembership(says(9, id2, id3))
		n.awaitRemoved("nobody has known it", "does not list it")
	})
}
