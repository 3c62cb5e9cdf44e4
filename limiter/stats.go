package limiter

import "sync/atomic"

// Stats are counters since the start of this node. Calls are counted on the node
// that a client asked; rounds on the leader.
type Stats struct {
	Allowed, Denied, DeniedLocal              uint64
	Busy, TryAgain, InDoubt, ClusterDown, OOM uint64
	Keys                                      uint64 // records in the table
	TableBytes                                int64
	Rounds, RoundCalls                        uint64
}

type counters struct {
	allowed, denied, deniedLocal atomic.Uint64
	status                       [statuses]atomic.Uint64
	rounds, roundCalls           atomic.Uint64
}

// count adds the answers of a chunk.
func (s *counters) count(calls []Call) {
	var allowed, denied uint64
	for i := range calls {
		c := &calls[i]
		switch {
		case c.Status != OK:
			s.status[c.Status].Add(1)
		case c.Op != Take && c.Op != TakeAll:
		case c.Verdict.Allowed:
			allowed++
		default:
			denied++
		}
	}
	if allowed > 0 {
		s.allowed.Add(allowed)
	}
	if denied > 0 {
		s.denied.Add(denied)
	}
}

// Stats returns the counters.
func (l *Limiter) Stats() Stats {
	s, tab := &l.stats, l.f.Table()
	keys := 0
	for ns := uint8(0); ns < Namespaces; ns++ {
		keys += tab.Len(ns)
	}
	return Stats{
		Allowed: s.allowed.Load(), Denied: s.denied.Load(), DeniedLocal: s.deniedLocal.Load(),
		Busy: s.status[Busy].Load(), TryAgain: s.status[TryAgain].Load(), InDoubt: s.status[InDoubt].Load(),
		ClusterDown: s.status[ClusterDown].Load(), OOM: s.status[OOM].Load(),
		Keys: uint64(keys), TableBytes: tab.Bytes(),
		Rounds: s.rounds.Load(), RoundCalls: s.roundCalls.Load(),
	}
}
