package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/mutant"
)

// leadership is one reign of this node, published when it may decide.
type leadership struct {
	term  uint64
	clock atomic.Pointer[leaderClock]
	since int64 // boot clock
}

// Leading says that this node leads and may decide.
func (n *Node) Leading() bool { return n.reign() != nil }

// reign is the leadership under which this node may decide now, nil if there is
// none. Raft steps down a moment before it says so, and not at all while it waits for
// the disk.
func (n *Node) reign() *leadership {
	l := n.lead.Load()
	if l == nil || n.transferring.Load() || n.raft.Load().State() != raft.Leader || n.stuck(n.clock.Boot()) {
		return nil
	}
	return l
}

// watchLeadership follows raft's notes of leadership won and lost. Raft waits for
// its reader, so nothing here may wait for raft.
func (n *Node) watchLeadership(notes <-chan bool) {
	cancel := context.CancelFunc(func() {})
	for {
		select {
		case won := <-notes:
			n.leadMu.Lock()
			cancel()
			n.lead.Store(nil)
			n.leadMu.Unlock()
			cancel = func() {}
			if won {
				var ctx context.Context
				ctx, cancel = context.WithCancel(context.Background())
				n.background.Go(func() { n.takeOver(ctx) })
			} else {
				n.log.Info("leadership lost")
			}
			n.leaderNews.announce()
		case <-n.stopping:
			n.leadMu.Lock()
			cancel()
			n.lead.Store(nil)
			n.leadMu.Unlock()
			return
		}
	}
}

// takeOver makes a won election a leadership that may decide: everything of the
// terms before is applied, cluster time has a clock, the cluster has an id.
func (n *Node) takeOver(ctx context.Context) {
	for {
		if mutant.On("void-batch-applied") {
			n.leadAtOnce(ctx)
		}
		l, err := n.prepare(ctx)
		if err == nil && n.publish(ctx, l) {
			n.log.Info("leading", "term", l.term, "cluster_time", time.Unix(0, l.clock.Load().base).UTC())
			return
		}
		if err != nil && ctx.Err() == nil {
			n.log.Warn("cannot lead yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-n.stopping:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var errTermChanged = errors.New("the term changed meanwhile")

// prepare does what comes before the first decision.
func (n *Node) prepare(ctx context.Context) (*leadership, error) {
	r := n.raft.Load()
	term := r.CurrentTerm()
	n.acks.begin(term, n.configuration())
	err := n.await(ctx, r.Barrier(n.cfg.Heartbeat))
	n.noteRefusal(err)
	if err != nil {
		return nil, err
	}
	if r.CurrentTerm() != term || r.State() != raft.Leader {
		return nil, errTermChanged
	}
	clock, err := n.electClock(ctx)
	if err != nil {
		return nil, err
	}
	l := &leadership{term: term, since: n.clock.Boot()}
	l.clock.Store(clock)
	return l, n.firstBatch(ctx, l)
}

// firstBatch commits the first batch of a leadership, so that all nodes have a
// receipt of its clock: receipts of another leader's may be ahead of it, by what
// the new one got later. The first batch ever gives the cluster its id.
func (n *Node) firstBatch(ctx context.Context, l *leadership) error {
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer n.endTurn()
	var effects []fsm.Effect
	if n.clusterID() == [16]byte{} {
		state := make([]byte, 16, 24)
		rand.Read(state)
		state = binary.LittleEndian.AppendUint64(state, 1) // generation
		effects = []fsm.Effect{{Op: fsm.OpSetCluster, State: state}}
	}
	entry := fsm.AppendEntry(nil, n.turnOf(l), effects)
	if _, o := n.propose(l.term, entry); o != fsm.Applied {
		return errors.New("the first batch of the leadership was not applied")
	}
	return nil
}

// publish opens the reign, unless it is over already.
func (n *Node) publish(ctx context.Context, l *leadership) bool {
	n.leadMu.Lock()
	defer n.leadMu.Unlock()
	if ctx.Err() != nil || n.isHalted() {
		return false
	}
	n.lead.Store(l)
	n.leaderNews.announce()
	return true
}

// await waits for a future of raft; raft does not answer all when it shuts down.
func (n *Node) await(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.stopping:
		return errClosed
	case <-n.halted:
		return errClosed
	}
}
