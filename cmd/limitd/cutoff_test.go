package main

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
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

func (n *testNode) take(key string, l algo.Limit) limiter.Call { return n.takeCost(key, l, 1) }

func (n *testNode) takeCost(key string, l algo.Limit, cost int64) limiter.Call {
	var c limiter.Chunk
	*c.Add() = limiter.Call{Op: limiter.Take, Key: []byte(key), Limit: l, Cost: cost}
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

// gate is the way to one node's peer port; while it is shut nothing reaches it.
type gate struct {
	ln     net.Listener
	target string
	mu     sync.Mutex
	shut   bool
	conns  []net.Conn
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{ln: ln, target: target}
	t.Cleanup(func() {
		ln.Close()
		g.set(true)
	})
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			g.mu.Lock()
			if err != nil || g.shut {
				in.Close()
				if err == nil {
					out.Close()
				}
			} else {
				g.conns = append(g.conns, in, out)
				for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
					go func() {
						io.Copy(way[0], way[1])
						way[0].Close()
					}()
				}
			}
			g.mu.Unlock()
		}
	}()
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			c.Close()
		}
		g.conns = nil
	}
}

// freeAddress is an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// TestAFollowerCutOffForAnHourDeniesNothingFromOldState: while a follower is
// away the key is reset, so what it remembers is no reason to deny.
func TestAFollowerCutOffForAnHourDeniesNothingFromOldState(t *testing.T) {
	gates := make([]*gate, 3)
	seen := make([]cluster.Member, 3) // as the others reach it
	for i := range seen {
		gates[i] = newGate(t, freeAddress(t))
		seen[i] = cluster.Member{ID: fmt.Sprintf("n%d", i+1), Resp: fmt.Sprintf("127.0.0.1:%d", i+1), Peer: gates[i].ln.Addr().String()}
	}
	clock := handClock{new(atomic.Int64)} // one machine
	dir := t.TempDir()
	nodes := make([]*testNode, len(seen))
	for i := range nodes {
		members := slices.Clone(seen)
		members[i].Peer = gates[i].target // where it listens
		nodes[i] = openTestNode(t, members, i, dir, clock)
		defer nodes[i].close()
	}
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
	limit, err := algo.NewThrottle(0, 1, 7200)
	if err != nil {
		t.Fatal(err)
	}
	deniesAlone := func() limiter.Call {
		t.Helper()
		before := f.limiter.Stats().DeniedLocal
		var c limiter.Call
		shortly(t, "a denial from the follower's own memory", func() bool {
			c = f.take("k", limit)
			if c.Status == limiter.OK && c.Verdict.Allowed {
				t.Fatalf("two admissions under a limit of one: %+v", c.Verdict)
			}
			return f.limiter.Stats().DeniedLocal > before
		})
		return c
	}
	shortly(t, "one admission", func() bool { return f.take("k", limit).Verdict.Allowed })
	deniesAlone()

	gates[follower].set(true)
	clock.ahead.Add(int64(time.Hour))
	var reset limiter.Chunk
	doubt := false // an earlier reset may have been the one that found the key
	shortly(t, "the majority resets the key", func() bool {
		for i, n := range nodes {
			if i != follower && n.Leading() {
				reset.Reset()
				*reset.Add() = limiter.Call{Op: limiter.Reset, Key: []byte("k")}
				n.limiter.Do(&reset)
				doubt = doubt || reset.Calls[0].Status == limiter.InDoubt
				return reset.Calls[0].Status == limiter.OK
			}
		}
		return false
	})
	if reset.Calls[0].N != 1 && !doubt {
		t.Fatalf("the reset found nothing: %+v", reset.Calls[0])
	}
	local := f.limiter.Stats().DeniedLocal
	for range 5 {
		if c := f.takeCost("k", limit, 2); c.Status == limiter.OK && c.Verdict.RetryAfter != algo.Never {
			t.Fatalf("more than the capacity: %+v", c.Verdict)
		}
		if c := f.takeCost("k", limit, 0); c.Status == limiter.OK && !c.Verdict.Allowed {
			t.Fatalf("a peek at the reset key is denied: %+v", c.Verdict)
		}
		if n := f.limiter.Stats().DeniedLocal - local; n > 0 {
			t.Fatalf("%d denials from old state", n)
		}
	}

	gates[follower].set(false)
	shortly(t, "one admission after the reset", func() bool {
		c := f.take("k", limit)
		if c.Status == limiter.OK && !c.Verdict.Allowed {
			t.Fatalf("denied after the reset: %+v", c.Verdict)
		}
		return c.Status == limiter.OK || c.Status == limiter.InDoubt
	})
	if wait := time.Duration(deniesAlone().Verdict.RetryAfter); wait < 119*time.Minute || wait > 2*time.Hour {
		t.Fatalf("the wait is %v, want about two hours", wait)
	}
}
