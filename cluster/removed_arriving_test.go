package cluster

import (
	"errors"
	"testing"
	"time"

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
		answers := says(9, id2, id3)
		hears := func(longer time.Duration) error {
			n.awake.ran.Add(int64(longer))
			n.judgeMembership(answers)
			return n.removedReason()
		}
		if err := errors.Join(hears(0), hears(2*removedAfter)); err != nil {
			t.Fatalf("by one that is not in touch with a leader: %v", err)
		}
		answers[0].status.Current = true
		if err := errors.Join(hears(0), hears(removedAfter/2)); err != nil {
			t.Fatalf("too soon: %v", err)
		}
		n.judgeMembership(nil) // one that is restarted again and again does not always answer
		hears(removedAfter / 2)
		n.awaitRemoved(id2+" is in touch with the leader", "no place for it")
	})
	t.Run("nobody had, and all that it has seen are gone", func(t *testing.T) {
		n := arriving(t)
		n.logged = lineage{[16]byte{15: 0x0c}, 1}
		answers := []bootAnswer{{status: &peerStatus{RaftID: old2, Servers: []peerServer{{RaftID: old2}}, ConfigIndex: 9, ConfigCommitted: true, Current: true}}}
		n.judgeMembership(answers)
		n.awake.ran.Add(int64(2 * removedAfter))
		if n.judgeMembership(answers); n.removedReason() != nil {
			t.Fatalf("by one of no cluster: %v", n.removedReason())
		}
		answers[0].status.setLineage(n.logged)
		n.judgeMembership(answers)
		n.awake.ran.Add(int64(removedAfter))
		n.judgeMembership(answers)
		n.awaitRemoved(old2+" is in touch with the leader", "no place for it")
	})
}
