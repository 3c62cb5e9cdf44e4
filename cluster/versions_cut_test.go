package cluster

import (
	"testing"
	"time"

	"limitd/fsm"
)

// The turn of a leader tells whether a batch may cut: not while a member reads version
// 1 alone, which would halt at it, and from the upgrade of the last such member on.
func TestTurnAllowsACutOnceAllMembersReadIt(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	old := c.nodes[2]
	c.start(c.nodes[0])
	c.start(c.nodes[1])
	c.start(old, reading(firstVersions))
	heardAll := func(n *testNode) bool {
		for _, s := range n.configuration().Servers {
			if p, ok := n.polledPeer(nodeID(string(s.ID))); s.ID != n.serverID() && (!ok || p.status.RaftID != string(s.ID)) {
				return false
			}
		}
		return true
	}
	for range 5 {
		leader := c.leader()
		eventually(t, "the leader to hear what all read", func() bool { return heardAll(leader) })
		if turn, err := leader.Begin(); err == nil {
			leader.Abort()
			if turn.Version >= fsm.VersionCut {
				t.Fatalf("a turn of version %d, while a member reads version 1", turn.Version)
			}
		}
		put(t, leader, "before")
	}
	if err := old.fatalReason(); err != nil {
		t.Fatalf("the old node has stopped: %v", err)
	}

	old.Close()
	c.start(old) // upgraded
	key, ident := []byte("log"), []byte{1}
	eventually(t, "a batch that cuts", func() bool {
		leader := c.leader()
		turn, err := leader.Begin()
		if err != nil {
			return false
		}
		if turn.Version < fsm.VersionCut {
			leader.Abort()
			return false
		}
		expiry := turn.At + int64(time.Hour)
		_, o := leader.Commit(fsm.AppendEntry(nil, turn, []fsm.Effect{
			{Op: fsm.OpReplace, Key: key, Ident: ident, State: []byte("12345"), Expiry: expiry},
			{Op: fsm.OpSplice, Key: key, Ident: ident, Drop: 1, Cut: 2, State: []byte("6"), Expiry: expiry},
		}))
		return o == fsm.Applied
	})
	for _, tn := range c.nodes {
		eventually(t, "the cut on every node", func() bool {
			tab := tn.FSM().Table()
			state, _, _ := tab.Get(tab.Hash(0, key), 0, key, ident, nil)
			return string(state) == "236"
		})
	}
}
