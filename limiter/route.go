package limiter

import (
	"time"

	"limitd/fsm"
)

// Calls that found the leader gone or not yet ready wait a moment before they
// are routed again; longer each time, since there may be many of them.
const (
	retryPause    = 5 * time.Millisecond
	retryPauseMax = 40 * time.Millisecond
)

// agree has the calls decided by the leader, wherever that is. Calls that are
// certainly undecided are routed again until their time is over; calls that may
// have been proposed never are.
func (l *Limiter) agree(c *Chunk, calls []Call) {
	deadline := l.now() + int64(l.cfg.RequestTimeout)
	noLeader := int64(0) // since when no leader was found
	for pause := retryPause; ; pause = min(2*pause, retryPauseMax) {
		begun := l.now()
		if begun >= deadline {
			failAll(calls, TryAgain)
			return
		}
		n, s, refused := l.route(c, calls, deadline)
		if calls = calls[n:]; s != OK {
			failAll(calls, s)
		}
		if s != OK || len(calls) == 0 {
			return
		}
		if !refused {
			noLeader = 0
		} else {
			if noLeader == 0 {
				noLeader = begun
			}
			now := l.now()
			wait := min(l.cfg.LeaderWait-time.Duration(now-noLeader), time.Duration(deadline-now))
			if wait <= 0 || !l.r.AwaitLeader(wait) {
				failAll(calls, ClusterDown)
				return
			}
		}
		time.Sleep(pause)
	}
}

// route sends the calls to where the leader is, once. It returns how many were
// answered, those at the front; the others are certainly not charged. A status
// other than OK is the answer for those. refused says that no leader took them.
func (l *Limiter) route(c *Chunk, calls []Call, deadline int64) (n int, s Status, refused bool) {
	if l.r.Leading() {
		n, s = l.decideHere(c, calls, deadline)
		return n, s, false
	}
	c.frame = appendRequest(c.frame[:0], calls)
	switch reply, o := l.r.Forward(c.frame, time.Duration(deadline-l.now())); o {
	case fsm.Applied:
		n, s = l.takeReply(calls, reply)
		return n, s, false
	case fsm.Refused:
		return 0, OK, true
	}
	for i := range calls {
		if calls[i].changesNothing() {
			calls[i].Status = TryAgain
		} else {
			calls[i].Status = InDoubt
		}
	}
	return len(calls), OK, false
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
		c.place(t.tab)
		t.bytes += c.size()
	}
}

func failAll(calls []Call, s Status) {
	for i := range calls {
		calls[i].Status = s
	}
}

// changesNothing says that the call never changes state.
func (c *Call) changesNothing() bool {
	switch c.Op {
	case Exists, Type, TTL, List:
		return true
	case Take:
		return c.Cost == 0 || c.Peek
	case TakeAll:
		return c.Peek
	}
	return false
}

// place hashes the keys by the table.
func (c *Call) place(t *fsm.Table) {
	c.hash = t.Hash(c.NS, c.Key)
	if len(c.ID) > 0 {
		c.idHash = t.Hash(c.NS+idSpace, c.ID)
	}
	if c.Op == TakeAll {
		for i := range c.Parts {
			c.Parts[i].hash = t.Hash(c.NS, c.Parts[i].Key)
		}
	}
}
