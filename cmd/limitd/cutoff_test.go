package main

import (
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"limitd/algo"
	"limitd/cluster"
	"limitd/limiter"
)

// handClock is a machine's time that the test moves on top of the real one.
type handClock struct{ ahead *atomic.Int64 }

var started = time.Now()

func (c handClock) Boot() int64 {
	return int64(time.Since(started)) + int64(time.Hour) + c.ahead.Load()
}
func (c handClock) BootID() string { return "one boot" }
func (c handClock) Wall() int64    { return time.Now().UnixNano() + c.ahead.Load() }

type testNode struct {
	*cluster.Node
	limiter *limiter.Limiter
}

func openTestNode(t *testing.T, members []cluster.Member, i int, dir string, clock cluster.Clock) *testNode {
	t.Helper()
	const beat = 200 * time.Millisecond
	n, err := cluster.Open(cluster.Config{
		ID: members[i].ID, Members: members, DataDir: filepath.Join(dir, members[i].ID),
		Heartbeat: beat, Election: beat, Lease: beat, Clock: clock,
		Fatal: func(err error) { t.Errorf("%s stopped itself: %v", members[i].ID, err) },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := limiter.New(limiter.DefaultConfig(), n.FSM(), n, n)
	n.SetHandler(l.Serve)
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	return &testNode{n, l}
}

func (n *testNode) close() {
	n.limiter.Close()
	n.Node.Close()
}

func (n *testNode) take(key string, l algo.Limit) limiter.Call {
	var c limiter.Chunk
	*c.Add() = limiter.Call{Op: limiter.Take, Key: []byte(key), Limit: l, Cost: 1}
	n.limiter.Do(&c)
	return c.Calls[0]
}

func shortly(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// TestAFollowerCutOffForAnHourDeniesNothingFromOldState: while a follower was
// away the key may have been reset, so what it remembers is no reason to deny.
func TestAFollowerCutOffForAnHourDeniesNothingFromOldState(t *testing.T) {
	members := make([]cluster.Member, 3)
	for i := range members {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		members[i] = cluster.Member{ID: fmt.Sprintf("n%d", i+1), Resp: fmt.Sprintf("127.0.0.1:%d", i+1), Peer: ln.Addr().String()}
		ln.Close()
	}
	clock := handClock{new(atomic.Int64)} // one machine
	dir := t.TempDir()
	nodes := make([]*testNode, len(members))
	for i := range nodes {
		nodes[i] = openTestNode(t, members, i, dir, clock)
	}
	defer func() {
		for _, n := range nodes {
			n.close()
		}
	}()
	leader, follower := -1, -1
	shortly(t, "a leader", func() bool {
		for i, n := range nodes {
			if n.Leading() {
				leader, follower = i, (i+1)%3
			}
		}
		return leader >= 0
	})
	f := nodes[follower]
	twoHours, err := algo.NewThrottle(0, 1, 7200)
	if err != nil {
		t.Fatal(err)
	}
	shortly(t, "one admission", func() bool { return f.take("k", twoHours).Verdict.Allowed })
	denied := func() limiter.Call {
		before := f.limiter.Stats().DeniedLocal
		var c limiter.Call
		shortly(t, "a denial from the follower's own memory", func() bool {
			c = f.take("k", twoHours)
			if c.Status == limiter.OK && c.Verdict.Allowed {
				t.Fatalf("two admissions under a limit of one: %+v", c.Verdict)
			}
			return f.limiter.Stats().DeniedLocal > before
		})
		return c
	}
	denied()

	for i, n := range nodes {
		if i != follower {
			n.close()
		}
	}
	clock.ahead.Add(int64(time.Hour))
	local := f.limiter.Stats().DeniedLocal
	for range 5 {
		if c := f.take("k", twoHours); c.Status != limiter.ClusterDown && c.Status != limiter.TryAgain && c.Status != limiter.InDoubt {
			t.Fatalf("cut off for an hour, the follower answered %v %+v", c.Status, c.Verdict)
		}
	}
	if n := f.limiter.Stats().DeniedLocal - local; n > 0 {
		t.Fatalf("%d denials from old state", n)
	}

	for i := range nodes {
		if i != follower {
			nodes[i] = openTestNode(t, members, i, dir, clock)
		}
	}
	c := denied()
	if wait := time.Duration(c.Verdict.RetryAfter); wait < 59*time.Minute || wait > time.Hour+time.Second {
		t.Fatalf("an hour later the wait is %v, want about an hour", wait)
	}
}
