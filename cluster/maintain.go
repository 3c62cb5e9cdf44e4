package cluster

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"
)

const (
	checkEvery = time.Second

	sweepSlots = 4096 // looked at in one step
	sweepMore  = 1024 // dropped in one step: look on at once

	// A snapshot is due at so much that changed, not by raft's timer alone: a start
	// goes through the log behind it, and the work grows with every record. It fights
	// the log for the disk and the processor, so it is not due sooner: keys that are
	// charged all the time would be written every few seconds.
	snapshotRecords  = 500_000
	snapshotBytes    = 64 << 20
	snapshotTight    = 50_000          // records, when the table is nearly full
	snapshotRest     = 2 * time.Second // between two, at least; or ten times what the last one took,
	snapshotRestMost = time.Minute     // but no longer: a large one rests by itself, and the log grows meanwhile
)

// maintain does the chores of a node until Close: snapshots when enough has
// changed, sweeping, the free disk.
func (n *Node) maintain() {
	step, check := time.NewTicker(stepEvery), time.NewTicker(checkEvery)
	defer step.Stop()
	defer check.Stop()
	var pace snapshotPace
	pace.rest(snapshotRest / 2)
	for {
		select {
		case <-n.stopping:
			return
		case <-step.C:
			for n.fsm.Sweep(sweepSlots) >= sweepMore {
				if n.isStopping() {
					return
				}
			}
			n.snapshotIfDue(&pace)
		case <-check.C:
			n.checkDisk()
			n.leadElsewhere()
			if r := n.raft.Load(); r != nil {
				n.setTrailing(r)
			}
		}
	}
}

func (n *Node) isStopping() bool {
	select {
	case <-n.stopping:
		return true
	default:
		return false
	}
}

// snapshotPace says when the next snapshot may begin.
type snapshotPace struct {
	notBefore time.Time
	running   chan time.Duration // how long it took
}

// rest puts the next snapshot off by d to 2d. All nodes apply the same entries,
// so without chance they would write their snapshots at the same moment, and a
// majority would be slow at once.
func (p *snapshotPace) rest(d time.Duration) { p.notBefore = time.Now().Add(d + rand.N(d)) }

// restBetween is the least time between a snapshot that took so long and the next.
func restBetween(took time.Duration) time.Duration {
	return max(snapshotRest, min(10*took, snapshotRestMost))
}

// snapshotIfDue begins a snapshot if enough has changed since the last one.
func (n *Node) snapshotIfDue(p *snapshotPace) {
	if p.running != nil {
		select {
		case took := <-p.running:
			p.running = nil
			p.rest(restBetween(took))
		default:
		}
		return
	}
	r := n.raft.Load()
	if r == nil || !n.snapshotDue() || time.Now().Before(p.notBefore) {
		return
	}
	p.running = make(chan time.Duration, 1)
	n.background.Go(func() {
		begun := time.Now()
		if err := n.takeSnapshot(r); err != nil && !n.isStopping() {
			n.log.Warn("snapshot failed", "error", n.mend(err))
		}
		p.running <- time.Since(begun)
	})
}

// snapshotDue says that enough has changed since the last snapshot. What was removed
// takes memory until one has it, so a table that is nearly full needs one sooner.
func (n *Node) snapshotDue() bool {
	records, bytes := n.fsm.Pending()
	few := n.cfg.SnapshotRecords
	if most := n.cfg.MaxMemory; most > 0 && n.fsm.Table().Used() > most/4*3 {
		few = snapshotTight
	}
	return records >= few || bytes >= snapshotBytes
}

// takeSnapshot has raft take a snapshot, if anything was applied since the last.
func (n *Node) takeSnapshot(r *raft.Raft) error {
	f := r.Snapshot()
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		if errors.Is(err, raft.ErrNothingNewToSnapshot) {
			return nil
		}
		return err
	case <-n.stopping:
		return errClosed
	}
}

// proposeTicks keeps an idle leader's log moving, and looks on when that does not
// succeed. A tick may wait for ever, for the turn or for its own entry; the look
// must not.
func (n *Node) proposeTicks() {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	var w lasting[achieved]
	one := make(chan struct{}, 1) // holds a token while a tick is under way
	for {
		select {
		case <-n.stopping:
			return
		case <-t.C:
		}
		n.watchWrites(&w)
		select {
		case one <- struct{}{}:
			n.background.Go(func() {
				n.tick()
				<-one
			})
		default:
		}
	}
}
