package cluster

import "context"

// leadAtOnce is part of a known defect (package mutant): it opens a won leadership
// before the entries of the terms before are applied, so that batches are decided on a
// state that is about to change. The guard makes them void.
func (n *Node) leadAtOnce(ctx context.Context) {
	if n.clusterID() == [16]byte{} {
		return // the first batch ever has nothing to come after
	}
	term := n.raft.Load().CurrentTerm()
	clock, err := n.electClock(ctx)
	if err != nil {
		return
	}
	l := &leadership{term: term, since: n.clock.Boot()}
	l.clock.Store(clock)
	n.publish(ctx, l)
}
