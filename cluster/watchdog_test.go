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
// verification and loading, for as long as it takes; killed there, a node would begin
// the install anew for ever. But what does not move at all is stuck.
func TestInstallIsNotAStuckLoopWhileItMoves(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n := c.leader()
	answers := [2]chan raft.RPCResponse{make(chan raft.RPCResponse, 1), make(chan raft.RPCResponse, 1)}
	var installs [2]raft.RPC
	for i := range installs { // the second one is another leader's, and waits for the first
		installs[i] = n.trans.watchInstall(raft.RPC{Reader: strings.NewReader("the last bytes"), RespChan: answers[i]})
		io.ReadAll(installs[i].Reader)
	}
	w := lasting[int64]{n.newestStep(), n.awake.ran.Load()}
	for i, moves := range []func(){
		n.installMoved,
		func() { n.disk.truncate(func() error { return n.loopStuck(&w) }) },
		func() { installs[0].RespChan <- raft.RPCResponse{}; <-answers[0]; n.installMoved() },
		n.installMoved,
	} {
		n.runFor(n.Node.cfg.DiskStall - time.Second)
		moves()
		if err := n.loopStuck(&w); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
	}
	n.runFor(n.Node.cfg.DiskStall + time.Second)
	if err := n.loopStuck(&w); err == nil {
		t.Error("an install that does not move is not stuck")
	}
	installs[1].RespChan <- raft.RPCResponse{}
	<-answers[1]
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
