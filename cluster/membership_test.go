package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// What tests of the membership have in common.

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

// change makes a change, which must succeed. On a busy machine the voters of a
// test, with its short timeouts, may seem not to answer, and a node that was taken in
// a moment ago has not got its state yet.
func (c *testCluster) change(asked *testNode, ch Change) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%s %s, asked of %s", ch.Op, ch.ID, asked.cfg.ID), func() bool {
		err := asked.Change(ch)
		if err != nil && !errors.Is(err, ErrNotNow) && !strings.Contains(err.Error(), "must answer") && !strings.Contains(err.Error(), "not caught up") {
			c.t.Fatalf("%s %s, asked of %s: %v", ch.Op, ch.ID, asked.cfg.ID, err)
		}
		return err == nil
	})
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

// awaitListed waits until a node knows that it is a member: at the start of a
// cluster the others need not wait for it.
func (tn *testNode) awaitListed() {
	tn.cluster.t.Helper()
	eventually(tn.cluster.t, tn.cfg.ID+" to know that it is a member", func() bool { return tn.listedAt() > 0 })
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

// restart closes a node and starts it again, with its configuration changed.
func (c *testCluster) restart(tn *testNode, change ...func(*Config)) {
	c.t.Helper()
	if err := tn.Close(); err != nil {
		c.t.Fatalf("close %s: %v", tn.cfg.ID, err)
	}
	for _, f := range change {
		f(&tn.cfg)
	}
	c.start(tn)
}

// forget makes a node that told of its end one that may tell again.
func (tn *testNode) forget() {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	tn.died, tn.out = nil, nil
}

func logTo(w *lockedBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// wipe gives a node that was closed an empty disk.
func (tn *testNode) wipe() { tn.cfg.DataDir = tn.cluster.t.TempDir() }
