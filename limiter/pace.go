package limiter

import "time"

// pacer holds a round back for a moment while the connections that were active
// lately have not queued again: with many connections that send one call at a
// time, fuller rounds raise the throughput more than the wait costs. It waits at
// most half the last round's time and never more than paceMax; chunks that are
// pipelined fill a round by themselves.
type pacer struct {
	n      uint64 // rounds so far
	active int    // tasks in the last two rounds, each counted once
	prev   int    // tasks in the last round
	calls  int    // calls of the last round
	last   int64  // ns the last proposed round took
	timer  *time.Timer
}

const (
	paceMax   = 4 * time.Millisecond
	paceLeast = 4 // below this many active connections there is nothing to gather
)

// wait returns when enough tasks wait, or it has been long enough.
func (p *pacer) wait(q *queue) {
	want := p.active * 9 / 10
	if p.active < paceLeast || p.calls >= roundCalls/2 {
		return
	}
	q.mu.Lock()
	if len(q.tasks) >= want {
		q.mu.Unlock()
		return
	}
	q.want = want
	select {
	case <-q.wake: // from before
	default:
	}
	q.mu.Unlock()
	d := min(time.Duration(p.last/2), paceMax)
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	select {
	case <-q.wake:
		p.timer.Stop()
	case <-p.timer.C:
	}
	q.mu.Lock()
	q.want = 1
	q.mu.Unlock()
}

// round notes which tasks a round took.
func (p *pacer) round(tasks []*task) {
	p.n++
	again, calls := 0, 0
	for _, t := range tasks {
		if p.n > 1 && t.round == p.n-1 {
			again++
		}
		t.round = p.n
		calls += t.upTo - t.next
	}
	p.active = len(tasks) + p.prev - again
	p.prev, p.calls = len(tasks), calls
}

func (p *pacer) took(ns int64) { p.last = ns }
