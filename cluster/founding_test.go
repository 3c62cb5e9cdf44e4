package cluster

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A cluster of one that was started by flags has grown; its first node loses its disk,
// and is started with the line that it was always started with.
func TestFirstNodeOfAGrownClusterFoundsNoSecondOne(t *testing.T) {
	for _, left := range []string{"with a majority", "without one"} {
		t.Run(left, func(t *testing.T) {
			t.Parallel()
			c := startTestCluster(t, 1)
			n1 := c.leader()
			n2, n3 := c.newcomer("n2"), c.newcomer("n3")
			c.start(n2)
			c.start(n3)
			c.awaitVoters(n1, n2, n3)
			put(t, n1, "k")
			n1.Close()
			if left == "without one" {
				n3.Close()
			}
			n1.wipe()
			n1.cfg.FoundingWait = 0 // the default
			begun := time.Now()
			c.start(n1)
			n1.awaitFatal("calls at peer address", "`limitd cluster remove n1 --addr ", "--join", n1.cfg.DataDir)
			if n1.raft.Load() != nil || !n1.empty() {
				t.Error("it has founded a cluster")
			}
			if left == "without one" {
				return
			}
			t.Logf("it refused after %v", time.Since(begun))
			n1.forget()
			l := c.leader(n1)
			c.change(l, Change{Op: ChangeRemove, ID: "n1"})
			c.restart(n1, func(cfg *Config) { cfg.Join = c.joinFor(n1) })
			c.awaitVoters(n1, n2, n3)
			eventually(t, "what was written before", func() bool { return has(n1, "k") })
		})
	}
}

// Nobody calls, or somebody who has no cluster either.
func TestNodeAloneFoundsWhenNoMemberCalls(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, func(cfg *Config) { cfg.FoundingWait = 500 * time.Millisecond })
	n := c.nodes[0]
	other := startPeers(t, "n2-00000002")
	called := make(chan error, 1)
	go func() {
		var err error
		for range 100 {
			if _, err = other.askAnyone(n.cfg.self().Peer, time.Second); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		called <- err
	}()
	begun := time.Now()
	c.start(n)
	if took := time.Since(begun); took < n.cfg.FoundingWait {
		t.Errorf("it listened for %v", took)
	}
	if err := <-called; err != nil {
		t.Fatal(err)
	}
	c.leader()
	if n.FoundingWait() != 0 {
		t.Error("it would listen again")
	}
	n.Close()
	begun = time.Now()
	c.start(n)
	if took := time.Since(begun); took >= n.cfg.FoundingWait {
		t.Errorf("it listened again, for %v", took)
	}
}

// The operator is faster than the node: it is told to join while it listens.
func TestNodeThatIsInvitedWhileItListensJoins(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	l := c.leader()
	put(t, l, "k")
	n2 := c.newcomer("n2", func(cfg *Config) { cfg.Join, cfg.FoundingWait = nil, time.Second })
	asked := make(chan error, 1)
	go func() {
		err := errors.New("not asked")
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		for err != nil && ctx.Err() == nil {
			err = l.Change(Change{Op: ChangeJoin, ID: "n2", Peer: n2.cfg.self().Peer})
		}
		asked <- err
	}()
	c.start(n2)
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	c.awaitVoters(l, n2)
	if err := n2.fatalReason(); err != nil {
		t.Error(err)
	}
}

func TestWhichHelloTellsOfACluster(t *testing.T) {
	for _, c := range []struct {
		name string
		h    hello
		want bool
	}{
		{"a new node", hello{raftID: id2}, false},
		{"one of a cluster", hello{raftID: id2, of: lineage{[16]byte{1}, 1}}, true},
		{"a founder that has not heard of a leader", hello{raftID: id2, expect: old1}, true},
	} {
		if got := c.h.hasCluster(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
