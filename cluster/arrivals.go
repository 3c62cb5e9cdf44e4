package cluster

import "sync/atomic"

// arrivals is what a follower knows of its leader's commit index: which commit
// index it was told, and after when that was sent (requestage.go). To have heard from the leader proves nothing about
// the state that is served here (heartbeats carry no commit index); to have
// applied what the leader said was committed proves that the state was current
// when it said so.
type arrivals struct {
	heard atomic.Int64 // boot clock of the newest request of any kind, 0: none
	log   atomic.Pointer[arrivalLog]
}

// arrival is one AppendEntries of the leader.
type arrival struct {
	boot   int64 // it was sent after that
	commit uint64
}

// arrivalLog is never changed once published: readers take no lock.
type arrivalLog struct {
	proven int64      // newest arrival that was applied when this was published
	n      int        // of wait
	wait   [8]arrival // not yet applied then, newest first
}

// push notes an arrival; one goroutine calls it.
func (a *arrivals) push(x arrival, applied func(commit uint64) bool) {
	next := &arrivalLog{proven: never, wait: [8]arrival{x}, n: 1}
	old := a.log.Load()
	if old == nil {
		a.log.Store(next)
		return
	}
	waiting := old.wait[:old.n]
	if x.boot < old.proven || len(waiting) > 0 && x.boot < waiting[0].boot {
		return // on a connection that was not used for longer: it proves no more than is known
	}
	next.proven = old.newest(applied)
	if len(waiting) > 0 && (waiting[0].commit == x.commit || len(waiting) == len(next.wait)) {
		// The same again says it for a later time. Of too many, the oldest are
		// kept: they are the next ones to be proven.
		waiting = waiting[1:]
	}
	for _, w := range waiting {
		if w.boot <= next.proven {
			break
		}
		next.wait[next.n] = w
		next.n++
	}
	a.log.Store(next)
}

// newest is the arrival time of the newest commit index that is applied.
func (l *arrivalLog) newest(applied func(commit uint64) bool) int64 {
	for _, w := range l.wait[:l.n] {
		if w.boot <= l.proven {
			break
		}
		if applied(w.commit) {
			return w.boot
		}
	}
	return l.proven
}

// newest is arrivalLog.newest of the published log.
func (a *arrivals) newest(applied func(commit uint64) bool) int64 {
	if l := a.log.Load(); l != nil {
		return l.newest(applied)
	}
	return never
}
