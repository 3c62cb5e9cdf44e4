package cluster

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// watch looks for failures until Close. It does nothing else, and nothing that could
// wait for the disk.
func (n *Node) watch() {
	t := time.NewTicker(stepEvery)
	defer t.Stop()
	var writes writesUnderWay
	var ceded int64
	for {
		select {
		case <-n.stopping:
			return
		case <-t.C:
		}
		n.watchFailures(&writes)
		n.cede(&ceded)
	}
}

// watchFailures stops the node when its state machine has, or when a write has
// been waiting for the disk for too long. Such a write cannot be taken back, and
// may land at any time.
func (n *Node) watchFailures(w *writesUnderWay) {
	if err := n.fsm.Halted(); err != nil {
		n.fatal(err)
		return
	}
	if err := n.snapshots().Failed(); err != nil {
		n.fatal(withRemedy(err))
		return
	}
	if wait := w.look(n.disk, n.awake.ran.Load()); wait > n.cfg.DiskStall {
		n.fatal(n.unfinishedWrite(wait))
		return
	}
	if r := n.raft.Load(); r != nil && r.State() == raft.Shutdown && !n.isStopping() {
		n.fatal(fmt.Errorf("raft has stopped on %s", n.raftID))
	}
}

// unfinishedWrite is the reason of a node whose disk hangs.
func (n *Node) unfinishedWrite(wait time.Duration) error {
	return fmt.Errorf("the disk of %s has not finished a write for %s (raft.disk_stall is %s): start this node again when the disk answers", n.logs.path, wait.Round(time.Second), n.cfg.DiskStall)
}

// writesUnderWay is the write and the truncation that wait for the disk, each by
// the boot time at which it began.
type writesUnderWay struct{ write, truncation lasting[int64] }

// look tells for how long the older of the two has been under way, 0: there is none.
func (w *writesUnderWay) look(d *disk, ran int64) (wait time.Duration) {
	if at := d.writing.Load(); at != idle {
		wait = w.write.look(at, ran)
	}
	if at := d.deleting.Load(); at != idle {
		wait = max(wait, w.truncation.look(at, ran))
	}
	return wait
}

// achieved is a reign and its newest batch that took effect.
type achieved struct {
	reign     *leadership
	committed int64
}

// watchWrites stops a node that leads and cannot write: its heartbeats would keep
// the others from electing one that can.
func (n *Node) watchWrites(w *lasting[achieved]) {
	l := n.reign()
	if l == nil {
		*w = lasting[achieved]{}
		return
	}
	quiet := w.look(achieved{l, n.committed.Load()}, n.awake.ran.Load())
	if quiet > max(writesDead*tickEvery, n.cfg.DiskStall) {
		n.fatal(fmt.Errorf("this node leads, and no write has succeeded for %s", quiet.Round(time.Second)))
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
// being installed the loop answers nothing.
func (n *Node) awaitProbe(answered <-chan struct{}) bool {
	w := lasting[int64]{n.newestStep(), n.awake.ran.Load()}
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
		if err := n.loopStuck(&w); err != nil {
			n.fatal(err)
			return false
		}
	}
}

// loopStuck says that the loop has had the time in which it must answer; while a
// snapshot is being installed, from its newest step on.
func (n *Node) loopStuck(w *lasting[int64]) error {
	wait := w.look(n.newestStep(), n.awake.ran.Load())
	if wait <= n.cfg.DiskStall {
		return nil
	}
	if n.disk.stalled(n.clock.Boot()) > n.cfg.DiskStall/2 { // it waits for that, whoever notices first
		return n.unfinishedWrite(wait)
	}
	return fmt.Errorf("raft's main loop has not answered for %s", wait.Round(time.Second))
}
