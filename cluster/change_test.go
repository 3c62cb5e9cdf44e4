package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// newcomer is a node that no configuration lists, and that asks to join through
// any member. It is not started.
func (c *testCluster) newcomer(id string, change ...func(*Config)) *testNode {
	c.t.Helper()
	tn := c.add(Config{
		ID: id, Members: []Member{{ID: id, Resp: "resp-of-" + id, Peer: freeAddr(c.t)}}, DataDir: c.t.TempDir(),
		Heartbeat: testHeartbeat, Election: testHeartbeat, Lease: testHeartbeat,
		Version: "test", Logger: testLogger(c.t, id),
	})
	tn.cfg.Join = c.joinFor(tn)
	for _, f := range change {
		f(&tn.cfg)
	}
	return tn
}

// joinFor asks the first node of the cluster that runs to take tn in, as the RESP port would.
func (c *testCluster) joinFor(tn *testNode) func(context.Context, string, bool) error {
	return func(_ context.Context, raftID string, nonVoter bool) error {
		for _, member := range c.running(tn) {
			if member.raft.Load() == nil {
				continue
			}
			err := member.Change(Change{Op: ChangeJoin, ID: raftID, Peer: tn.cfg.self().Peer, NonVoter: nonVoter})
			if err != nil && !errors.Is(err, ErrNotNow) {
				err = fmt.Errorf("%w: %w", ErrJoinRefused, err)
			}
			return err
		}
		return errors.New("no member runs")
	}
}

// change makes a change, which must succeed.
func (c *testCluster) change(asked *testNode, ch Change) {
	c.t.Helper()
	if err := asked.Change(ch); err != nil {
		c.t.Fatalf("%s %s, asked of %s: %v", ch.Op, ch.ID, asked.cfg.ID, err)
	}
}

// refuses makes a change, which must be refused with these words.
func (c *testCluster) refuses(asked *testNode, ch Change, words ...string) {
	c.t.Helper()
	err := asked.Change(ch)
	if err == nil {
		c.t.Fatalf("%s %s was not refused", ch.Op, ch.ID)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			c.t.Errorf("%s %s: %q is not said: %v", ch.Op, ch.ID, w, err)
		}
	}
}

// awaitMembers waits until all of these nodes, and no other ones, are members as each of them sees it, those in
// voters with a vote.
func (c *testCluster) awaitMembers(nodes []*testNode, voters ...*testNode) {
	c.t.Helper()
	want := map[string]bool{}
	for _, tn := range nodes {
		want[tn.raftID] = false
	}
	for _, tn := range voters {
		want[tn.raftID] = true
	}
	for _, tn := range nodes {
		var got map[string]bool
		for deadline := time.Now().Add(testPatience); ; time.Sleep(5 * time.Millisecond) {
			got = map[string]bool{}
			for _, s := range tn.configuration().Servers {
				got[string(s.ID)] = s.Suffrage == raft.Voter
			}
			if fmt.Sprint(got) == fmt.Sprint(want) {
				break
			}
			if time.Now().After(deadline) {
				c.t.Fatalf("%s has the members %v, want %v", tn.cfg.ID, got, want)
			}
		}
	}
}

func (c *testCluster) awaitVoters(nodes ...*testNode) {
	c.t.Helper()
	c.awaitMembers(nodes, nodes...)
}

// awaitRemoved waits until a node was told that it is no member any more.
func (tn *testNode) awaitRemoved(words ...string) {
	t := tn.cluster.t
	t.Helper()
	eventually(t, tn.cfg.ID+" to be told that it was removed", func() bool { return tn.removedReason() != nil })
	err := tn.removedReason()
	if !errors.Is(err, ErrRemoved) {
		t.Errorf("%v is no ErrRemoved", err)
	}
	for _, w := range append(words, tn.raftID, tn.cfg.DataDir, "--join") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not said: %v", w, err)
		}
	}
	if tn.fatalReason() != nil {
		t.Errorf("a removed node failed: %v", tn.fatalReason())
	}
}

func TestClusterGrowsFromThreeToFiveAndBack(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	three := c.nodes
	put(t, c.leader(), "before")
	n4, n5 := c.newcomer("n4"), c.newcomer("n5")
	c.start(n4)
	c.start(n5)
	c.awaitVoters(c.nodes...)
	put(t, c.leader(), "five")
	for _, tn := range c.nodes {
		eventually(t, tn.cfg.ID+" to have all", func() bool { return has(tn, "before") && has(tn, "five") })
	}
	eventually(t, "n4 to forget that it joins", func() bool { return n4.joining.wants() == joinsNot })
	if rows := n4.Nodes(); len(rows) != 5 {
		t.Errorf("n4 sees %+v", rows)
	}
	eventually(t, "n1 to know where n5 serves clients", func() bool {
		for _, r := range three[0].Nodes() {
			if r.ID == "n5" && r.Resp == "resp-of-n5" {
				return true
			}
		}
		return false
	})

	c.change(three[1], Change{Op: ChangeRemove, ID: "n5"})
	n5.awaitRemoved()
	n5.Close()
	c.change(n4, Change{Op: ChangeLeave})
	n4.awaitRemoved()
	n4.Close()
	c.awaitVoters(three...)
	put(t, c.leader(n4, n5), "three")
}
