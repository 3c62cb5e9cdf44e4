package cluster

import "limitd/mutant"

// Touch returns a cluster time (ns) that is not ahead of the leader's, and
// whether a denial may be answered now from the state applied here. Denials stay
// true while nothing gives capacity back, so what matters is that a reset made
// elsewhere is not missed for long: in touch, it is missed for less than a
// heartbeat timeout.
//
// A leader is in touch while a quorum has acknowledged requests that it sent less
// than a heartbeat timeout ago. A follower is in touch while the newest commit
// index that it has applied was sent less than a heartbeat timeout ago, by a
// leader that knew all that was committed before it.
//
// It is called for each chunk of requests: it takes no lock and allocates
// nothing.
func (n *Node) Touch() (now int64, ok bool) {
	boot := n.clock.Boot()
	whole := n.fsm.Halted() == nil
	if l := n.lead.Load(); l != nil {
		whole = whole && !n.transferring.Load() && !n.stuck(boot)
		now, _ := l.clock.Load().at(boot, n.fsm.Time())
		return now, whole && n.acks.fresh(l.term, boot, int64(n.cfg.Heartbeat))
	}
	return n.lowerBound(boot), whole && n.inTouch(boot)
}

// lowerBound is a cluster time that is not ahead: the applied time, or the newest
// receipt of this leader and what has gone by since, less a drift of one in a
// thousand.
func (n *Node) lowerBound(boot int64) int64 {
	t := n.fsm.Time()
	if rc, r := n.receipts.newest.Load(), n.raft.Load(); rc != nil && r != nil && rc.term == r.CurrentTerm() {
		elapsed := max(boot-rc.boot, 0)
		t = max(t, rc.at+elapsed-elapsed/1000)
	}
	return t
}

// inTouch is the follower's rule.
func (n *Node) inTouch(boot int64) bool {
	if mutant.On("denial-out-of-touch") {
		return true
	}
	l := n.arrivals.log.Load()
	if l == nil {
		return false
	}
	limit := boot - int64(n.cfg.Heartbeat)
	for _, w := range l.wait[:l.n] {
		if w.boot <= limit {
			break
		}
		if n.hasApplied(w.commit) {
			return true
		}
	}
	return l.proven > limit
}

// hasApplied says whether the state machine has taken in everything up to a
// commit index. It never sees no-ops and barriers, so its own index may stay
// below: then it is enough that the log reaches the commit index and that the
// newest command in it is applied.
func (n *Node) hasApplied(commit uint64) bool {
	applied := n.fsm.Applied()
	if applied >= commit {
		return true
	}
	r := n.raft.Load()
	if r == nil || r.CommitIndex() < commit {
		return false
	}
	newest := n.logs.command.Load()
	return newest <= commit && applied >= newest
}
