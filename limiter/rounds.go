package limiter

import (
	"time"

	"limitd/fsm"
	"limitd/mutant"
)

const (
	roundCalls = 8192      // most calls of one round
	roundBytes = 256 << 10 // a round stops deciding when its effects have about this size
	// deadlineStep is how often deadlines are looked at.
	deadlineStep = 10 * time.Millisecond
)

// runRounds decides what waits, one round after the other, until Close.
func (l *Limiter) runRounds() {
	defer l.stopped.Done()
	defer close(l.roundsOver)
	rd := &round{l: l, ws: l.ws, next: make([]byte, 0, 64), big: make([]byte, 0, 64)}
	var tasks []*task
	for {
		select {
		case <-l.stop:
			l.abandonAll()
			return
		case <-l.q.wake:
		}
		for l.q.len() > 0 {
			l.pace.wait(&l.q)
			turn, err := l.p.Begin()
			if err != nil {
				for _, t := range l.q.takeAll() {
					t.giveBack()
				}
				break
			}
			tasks = l.q.take(tasks[:0], roundCalls)
			if len(tasks) == 0 {
				l.p.Abort()
				break
			}
			l.runRound(rd, turn, tasks)
			clear(tasks)
		}
	}
}

// runRound decides the tasks at turn, proposes what they change, and answers.
func (l *Limiter) runRound(rd *round, turn fsm.Turn, tasks []*task) {
	begun := l.now()
	l.round++
	n, taken := rd.decideTasks(turn, tasks)
	if taken < len(tasks) { // the entry is full: the rest is for the next round
		l.q.putBack(tasks[taken:])
		tasks = tasks[:taken]
	}
	l.pace.round(tasks)
	l.stats.rounds.Add(1)
	l.stats.roundCalls.Add(uint64(n))

	effects := l.ws.effectsOf()
	if len(effects) == 0 && !rd.must {
		if _, ok := l.r.Touch(); ok && l.r.Leading() {
			l.p.Abort()
			if l.cfg.Trace != nil {
				l.traceRound(turn, tasks, nil)
				l.traceOutcome(turn, 0, "none")
			}
			l.finish(tasks, 0)
			return
		}
		// Out of touch: only a committed entry shows that the state was current.
	}
	entry := fsm.AppendEntry(make([]byte, 0, l.ws.bytes+l.ws.bytes/4+64), turn, effects) // raft keeps it
	if l.cfg.Trace != nil {
		l.traceRound(turn, tasks, entry)
	}
	l.propose(tasks)
	if mutant.On("ack-before-commit") {
		l.finish(tasks, l.f.Applied()+1)
	}
	index, outcome := l.p.Commit(entry)
	if l.cfg.Trace != nil {
		l.traceOutcome(turn, index, outcome.String())
	}
	l.pace.took(l.now() - begun)
	l.inFlight.Lock()
	l.inFlight.tasks = l.inFlight.tasks[:0]
	l.inFlight.Unlock()
	switch outcome {
	case fsm.Applied:
		l.finish(tasks, index)
	case fsm.Void, fsm.Refused:
		for _, t := range tasks {
			if t.state.CompareAndSwap(proposed, settled) {
				t.giveBack()
			}
		}
	default:
		for _, t := range tasks {
			if t.state.CompareAndSwap(proposed, settled) {
				t.fail(TryAgain, InDoubt)
			}
		}
	}
}

// decideTasks decides calls in order until the round is full. It returns how
// many calls it decided and how many tasks it began.
func (r *round) decideTasks(turn fsm.Turn, tasks []*task) (calls, begun int) {
	r.ws.reset()
	r.now, r.must, r.tab = turn.At, false, r.l.f.Table()
	r.ids = r.l.countIDs()
	r.offset, r.cuts = r.l.f.State().Offset, turn.Version >= fsm.VersionCut
	for i, t := range tasks {
		if t.tab != r.tab {
			r.rehash(t)
		}
		j := t.next
		for ; j < len(t.calls); j++ {
			if r.ws.bytes >= roundBytes {
				break
			}
			c := &t.calls[j]
			c.Status, c.changes, c.Repeated = OK, false, false
			r.trace(c, turn, calls)
			r.decide(c)
			calls++
		}
		t.upTo = j
		if j == t.next {
			return calls, i
		}
		if j < len(t.calls) {
			return calls, i + 1
		}
	}
	return calls, len(tasks)
}

// rehash is for tasks that were hashed by a table that has been replaced.
func (r *round) rehash(t *task) {
	t.tab = r.tab
	for i := range t.calls {
		t.calls[i].place(r.tab)
	}
}

// propose publishes the tasks, so that their owners can be told at their
// deadline, whatever the entry does.
func (l *Limiter) propose(tasks []*task) {
	l.inFlight.Lock()
	l.inFlight.tasks = append(l.inFlight.tasks[:0], tasks...)
	for _, t := range tasks {
		t.state.Store(proposed)
	}
	l.inFlight.Unlock()
}

// finish answers what the round decided. Tasks with calls left go back to the
// queue's front.
func (l *Limiter) finish(tasks []*task, index uint64) {
	var more []*task
	for _, t := range tasks {
		if index > 0 && !t.state.CompareAndSwap(proposed, deciding) {
			continue // its owner was told at its deadline
		}
		if index > 0 {
			t.index = index
			t.traceEntry(index)
		}
		t.next = t.upTo
		if t.next < len(t.calls) {
			more = append(more, t)
			continue
		}
		t.state.Store(settled)
		t.undone = false
		t.settle()
	}
	l.q.putBack(more)
}

// runDeadlines answers tasks that are over their deadline: those that wait are
// certainly not charged, those that are proposed are in doubt. What waits on a node
// that has ceased to lead, perhaps behind a batch that is stuck, has another leader
// to go to.
func (l *Limiter) runDeadlines() {
	defer l.stopped.Done()
	tick := time.NewTicker(deadlineStep)
	defer tick.Stop()
	var late []*task
	for {
		select {
		case <-l.roundsOver: // until then a round may be in flight
			return
		case <-tick.C:
		}
		now := l.now()
		late = l.q.expired(now, late[:0])
		for _, t := range late {
			t.fail(TryAgain, TryAgain)
		}
		clear(late)
		if l.q.len() > 0 && !l.r.Leading() {
			for _, t := range l.q.takeAll() {
				t.giveBack()
			}
		}
		l.inFlight.Lock()
		for _, t := range l.inFlight.tasks {
			if t.state.Load() == proposed && t.deadline <= now && t.state.CompareAndSwap(proposed, settled) {
				t.fail(TryAgain, InDoubt)
			}
		}
		l.inFlight.Unlock()
	}
}

// abandonAll ends what waits at Close.
func (l *Limiter) abandonAll() {
	for _, t := range l.q.takeAll() {
		t.fail(TryAgain, TryAgain)
	}
}
