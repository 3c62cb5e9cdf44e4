package cluster

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// watchFailures stops the node when its state machine has, or when a write has
// been waiting for the disk for too long. Such a write cannot be taken back, and
// may land at any time.
func (n *Node) watchFailures() {
	if err := n.fsm.Halted(); err != nil {
		n.fatal(err)
		return
	}
	if wait := n.disk.stuck(n.clock.Boot()); wait > n.cfg.DiskStall {
		n.fatal(fmt.Errorf("the disk of %s has not finished a write for %s (raft.disk_stall is %s)", n.logs.path, wait.Round(time.Second), n.cfg.DiskStall))
		return
	}
	if r := n.raft.Load(); r != nil && r.State() == raft.Shutdown && !n.isStopping() {
		n.fatal(fmt.Errorf("%s was removed from the cluster: raft has stopped", n.raftID))
	}
}

// probe asks raft's main loop for an answer again and again. What it asks for, to
// bootstrap with nobody in it, every state refuses at once.
func (n *Node) probe(r *raft.Raft) {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	for {
		select {
		case <-n.stopping:
			return
		case <-t.C:
		}
		answered := make(chan struct{})
		go func() {
			r.BootstrapCluster(raft.Configuration{}).Error()
			close(answered)
		}()
		if !n.awaitProbe(answered) {
			return
		}
	}
}

// awaitProbe waits for the answer; false if the node is over. While a snapshot is
// being installed the loop answers nothing, and is not stuck as long as that moves.
func (n *Node) awaitProbe(answered <-chan struct{}) bool {
	asked := n.clock.Boot()
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	for {
		select {
		case <-answered:
			return true
		case <-n.stopping:
			return false
		case <-n.halted:
			return false
		case <-t.C:
		}
		now := n.clock.Boot()
		if moved := n.trans.progress.Load(); moved != idle {
			asked = max(asked, moved)
		}
		if wait := time.Duration(now - asked); wait > n.cfg.DiskStall {
			n.fatal(fmt.Errorf("raft's main loop has not answered for %s", wait.Round(time.Second)))
			return false
		}
	}
}
