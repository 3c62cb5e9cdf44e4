package cluster

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// runFor lets a node's watchdogs believe that the process ran for so long.
func (tn *testNode) runFor(d time.Duration) {
	tn.clock.boot.Add(int64(d))
	tn.awake.ran.Add(int64(d))
}

// stopsBecause waits until the node stops, and checks the reason.
func stopsBecause(t *testing.T, n *testNode, words string) {
	t.Helper()
	eventually(t, "the node to stop", func() bool { return n.fatalReason() != nil })
	if err := n.fatalReason().Error(); !strings.Contains(err, words) {
		t.Errorf("it stopped because %s; want a reason with %q", err, words)
	}
}

// A batch that never ends keeps the turn, and a tick waits for it for ever: the
// look at the time must not wait with the tick.
func TestLeaderThatCannotWriteStopsThoughItsTickWaits(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n := c.leader()
	n.turn <- struct{}{} // a batch that never ends
	defer n.endTurn()
	n.runFor(tickEvery)
	time.Sleep(2 * checkEvery) // a tick begins to wait
	if err := n.fatalReason(); err != nil {
		t.Fatalf("after %s without a write: %v", tickEvery, err)
	}
	n.runFor(10 * time.Minute)
	stopsBecause(t, n, "no write has succeeded")
}

// After the last byte of a snapshot the main loop is silent through sync, rename,
// verification and loading; killed there, a node would begin the install anew for ever.
func TestLargeInstallIsNotAStuckLoop(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n := c.leader()
	const size = 1 << 30
	answer := make(chan raft.RPCResponse, 1)
	rpc := n.trans.watchInstall(raft.RPC{Reader: strings.NewReader("the last bytes"), RespChan: answer}, size)
	io.ReadAll(rpc.Reader)
	w := lasting[int64]{n.trans.progress.Load(), n.awake.ran.Load()}
	n.runFor(10 * time.Minute)
	if err := n.loopStuck(&w); err != nil {
		t.Errorf("ten minutes after the last byte of 1 GiB: %v", err)
	}
	n.runFor(10 * time.Minute)
	if err := n.loopStuck(&w); err == nil {
		t.Error("after twenty minutes it is not stuck")
	}
	rpc.RespChan <- raft.RPCResponse{}
	<-answer
	if err := n.loopStuck(&w); err != nil {
		t.Errorf("the install has just ended: %v", err)
	}
	n.runFor(n.Node.cfg.DiskStall + time.Second)
	if err := n.loopStuck(&w); err == nil {
		t.Error("the time for the install goes on after it")
	}
}

// After a pause of the machine or the process everything looks old, and nothing
// has had the time that it is given.
func TestPauseIsNotTakenForAFailure(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, func(cfg *Config) { cfg.DiskStall = 10 * time.Second })
	n := c.nodes[0]
	disk := c.startBreakable(n)
	put(t, c.leader(), "before")
	release := disk.holdWrites()
	done := make(chan bool)
	go func() { _, o := tryPut(n, "during"); done <- o == fsm.Applied }()
	eventually(t, "a write to be under way", func() bool { return n.disk.writing.Load() != idle })
	probed := make(chan bool)
	answer := make(chan struct{})
	go func() { probed <- n.awaitProbe(answer) }()

	n.clock.boot.Add(int64(time.Hour))
	eventually(t, "the watchdogs to look", func() bool { return n.awake.resumed.Load() != never })
	time.Sleep(2 * checkEvery)
	release()
	close(answer)
	if !<-done || !<-probed {
		t.Error("what was under way when the pause began did not end well")
	}
	put(t, n, "after")
	if err := n.fatalReason(); err != nil {
		t.Errorf("a pause of an hour stopped the node: %v", err)
	}
}
