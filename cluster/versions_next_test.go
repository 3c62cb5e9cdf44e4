//go:build nextformat

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/snapshot"
)

// oldVersions are what the release before this build reads.
var oldVersions = versions{fsm.ReadsEntry - 1, snapshot.Reads - 1}

// asOld makes a node of this build one of the release before.
func asOld(n *Node) { reading(oldVersions)(n) }

// newestVersionOf is the version of the newest batch in a node's log.
func newestVersionOf(t *testing.T, tn *testNode) byte {
	t.Helper()
	last, _ := tn.logs.LastIndex()
	for ; last > 0; last-- {
		var l raft.Log
		if err := tn.logs.read(last, &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == raft.LogCommand {
			return l.Data[0]
		}
	}
	t.Fatal("no batch in the log")
	return 0
}

// TestUpgradeNodeByNode goes through an upgrade and back with one node that is old:
// what is written, what is sent to it, whether it may join, how it ends.
func TestUpgradeNodeByNode(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	old := c.nodes[2]
	c.start(c.nodes[0])
	c.start(c.nodes[1])
	c.start(old, asOld)
	leader := c.leader(old)
	if leader.Transfer(leader.cfg.ID) != nil {
		leader = c.leader(old)
	}
	allHeard := func() bool {
		for _, s := range leader.configuration().Servers {
			if _, ok := leader.polledPeer(nodeID(string(s.ID))); !ok && s.ID != leader.serverID() {
				return false
			}
		}
		return true
	}
	eventually(t, "the leader to hear what all read", allHeard)
	put(t, leader, "before")
	if v := newestVersionOf(t, leader); v != oldVersions.entry || old.fatalReason() != nil {
		t.Fatalf("version %d was written, the old node reads up to %d (%v)", v, oldVersions.entry, old.fatalReason())
	}
	if s := leader.Status(); s.WritesEntry != oldVersions.entry {
		t.Errorf("the status tells version %d", s.WritesEntry)
	}

	old.Close()
	c.start(old) // upgraded
	leader = c.leader()
	eventually(t, "the new version", func() bool {
		put(t, c.leader(), "after")
		return newestVersionOf(t, c.leader()) == fsm.ReadsEntry
	})
	eventually(t, "the new format on the upgraded node", func() bool { return newestVersionOf(t, old) == fsm.ReadsEntry && has(old, "after") })

	joiner := c.newcomer("n9", func(cfg *Config) { cfg.NonVoter = true })
	c.start(joiner, asOld)
	eventually(t, "the old newcomer to be refused", func() bool { return joiner.fatalReason() != nil })
	refusal := fmt.Sprintf("reads entries up to version %d, and version %d is in use", oldVersions.entry, fsm.ReadsEntry)
	if err := joiner.fatalReason(); !errors.Is(err, ErrJoinRefused) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("the old newcomer: %v", err)
	}

	if leader = c.leader(); leader == old {
		if err := leader.Transfer(c.nodes[0].cfg.ID); err != nil {
			t.Fatal(err)
		}
		leader = c.leader(old)
	}
	old.Close()
	put(t, leader, "without it")
	n, err := Open(old.cfg, nil) // and downgraded again; what is in its log it would find here, what is sent it gets later
	if err != nil {
		t.Fatal(err)
	}
	asOld(n)
	unknown := fmt.Sprintf("unknown entry version %d", fsm.ReadsEntry)
	old.Node = n
	if err := n.Start(); err != nil { // it came before raft was ready
		wantNewer(t, err, unknown)
	}
	eventually(t, "the downgraded node to stop", func() bool { return old.fatalReason() != nil })
	wantNewer(t, old.fatalReason(), unknown)
	put(t, leader, "the others go on")
	for _, tn := range c.others(old) {
		if tn != joiner && tn.fatalReason() != nil {
			t.Errorf("%s stopped too: %v", tn.cfg.ID, tn.fatalReason())
		}
	}
}
