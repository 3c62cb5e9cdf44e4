package limiter

import (
	"time"

	"limitd/fsm"
)

// retryPause is how long a call that found the leader gone or not yet ready
// waits before it is routed again.
const retryPause = 5 * time.Millisecond

// agree has the calls decided by the leader, wherever that is. Calls that are
// certainly undecided are routed again until their time is over; calls that may
// have been proposed never are.
func (l *Limiter) agree(c *Chunk, calls []Call) {
	deadline := l.now() + int64(l.cfg.RequestTimeout)
	noLeader := int64(0) // since when no leader was found
	for len(calls) > 0 {
		now := l.now()
		left := time.Duration(deadline - now)
		if left <= 0 {
			failAll(calls, TryAgain)
			return
		}
		if l.r.Leading() {
			n, s := l.decideHere(c, calls, deadline)
			calls = calls[n:]
			if s != OK {
				failAll(calls, s)
				return
			}
			noLeader = 0
			if len(calls) > 0 {
				time.Sleep(retryPause)
			}
			continue
		}
		c.frame = appendRequest(c.frame[:0], calls)
		reply, o := l.r.Forward(c.frame, left)
		switch o {
		case fsm.Applied:
			n, s := l.takeReply(calls, reply)
			calls = calls[n:]
			if s != OK {
				failAll(calls, s)
				return
			}
			noLeader = 0
			if len(calls) > 0 {
				time.Sleep(retryPause)
			}
		case fsm.Refused:
			if noLeader == 0 {
				noLeader = now
			}
			wait := min(l.cfg.LeaderWait-time.Duration(l.now()-noLeader), time.Duration(deadline-l.now()))
			if wait <= 0 || !l.r.AwaitLeader(wait) {
				failAll(calls, ClusterDown)
				return
			}
			time.Sleep(retryPause)
		default:
			for i := range calls {
				if calls[i].Op == Take && calls[i].Cost == 0 || calls[i].isRead() {
					calls[i].Status = TryAgain
				} else {
					calls[i].Status = InDoubt
				}
			}
			return
		}
	}
}

// decideHere queues the calls for a round of this node and waits. It returns how
// many were answered; the others are certainly not charged. A status other than
// OK is the answer for those; OK says: route them again.
func (l *Limiter) decideHere(c *Chunk, calls []Call, deadline int64) (int, Status) {
	t := c.task
	if t == nil {
		t = &task{done: make(chan struct{}, 1)}
		c.task = t
	}
	t.calls, t.next, t.deadline, t.index = calls, 0, deadline, 0
	l.prepare(t)
	if s := l.q.push(t); s != OK {
		return 0, s
	}
	<-t.done
	t.calls = nil
	return t.next, OK
}

// prepare hashes the keys on the caller's goroutine and adds up the sizes.
func (l *Limiter) prepare(t *task) {
	t.tab = l.f.Table()
	t.bytes = 0
	for i := range t.calls {
		c := &t.calls[i]
		c.Status, c.changes = OK, false
		c.hash = t.tab.Hash(c.NS, c.Key)
		t.bytes += c.size()
	}
}

func failAll(calls []Call, s Status) {
	for i := range calls {
		calls[i].Status = s
	}
}

// isRead says that the call never changes state.
func (c *Call) isRead() bool {
	switch c.Op {
	case Exists, Type, TTL:
		return true
	}
	return false
}
