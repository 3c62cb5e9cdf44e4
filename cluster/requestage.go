package cluster

import (
	"sync"
	"sync/atomic"
)

// When a request of the leader arrives says little about when it was sent: TCP delivers
// what it was given before a cut when the cut is over, and the kernel does so even for a
// sender that has given up. But raft asks on a connection only when its last request
// there was answered. So a request is younger than the answer before it on the same
// connection, on this node's own clock.

// requestAge is what one connection tells of the request that is open on it.
type requestAge struct {
	boot     func() int64 // nil: nobody asks
	open     atomic.Bool  // a request has begun to arrive and is not answered
	answered atomic.Int64 // boot clock of the answer before it, or of the beginning
}

// answer notes that an answer is about to be sent.
func (a *requestAge) answer() {
	if a.boot != nil {
		a.answered.Store(a.boot())
	}
	a.open.Store(false)
}

// requestAges are those of all connections, by who asks there.
type requestAges struct {
	mu  sync.Mutex
	all map[*requestAge]string
}

// add has a connection of from, which began at the boot clock began, looked at until
// remove.
func (s *requestAges) add(a *requestAge, from string, began int64, boot func() int64) {
	a.boot = boot
	a.answered.Store(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*requestAge]string{}
	}
	s.all[a] = from
}

func (s *requestAges) remove(a *requestAge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, a)
}

// sentAfter is a boot time, at most now, after which a request of from that has arrived
// by now was sent. Of several that are open, it may be any.
func (s *requestAges) sentAfter(from string, now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, of := range s.all {
		if of == from && a.open.Load() {
			now = min(now, a.answered.Load())
		}
	}
	return now
}
