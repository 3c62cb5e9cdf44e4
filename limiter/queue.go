package limiter

import (
	"sync"
	"sync/atomic"

	"limitd/fsm"
)

// A task's state says who may write its answers. Whoever moves it to settled
// does, and tells the owner.
const (
	waiting  uint32 = iota // in the queue
	deciding               // a round is deciding its calls: nobody else touches them
	proposed               // the entry with its effects is on its way
	settled                // answered, or given back undecided
)

// task is a chunk's calls on their way through the leader.
type task struct {
	calls    []Call
	tab      *fsm.Table // whose Hash the calls carry
	bytes    int64
	deadline int64 // by Limiter.now
	state    atomic.Uint32
	next     int    // calls[:next] are answered; a long chunk takes several rounds
	upTo     int    // calls[next:upTo] are in the round that decides or is proposed
	index    uint64 // of the newest entry that holds effects of these calls
	undone   bool   // settled without an answer for calls[next:]: certainly not charged, may be routed again
	round    uint64 // the last round it was part of, for pacing

	done  chan struct{} // local: signalled when settled
	reply func(*task)   // from another node: called when settled
}

// settle answers the owner. The caller has moved state to settled.
func (t *task) settle() {
	if t.reply != nil {
		t.reply(t)
		return
	}
	t.done <- struct{}{}
}

// fail ends the task with s for what is not answered yet: calls of the proposed
// range that depend on its entry get inFlight instead.
func (t *task) fail(s, inFlight Status) {
	for i := t.next; i < len(t.calls); i++ {
		if i < t.upTo && t.calls[i].changes {
			t.calls[i].Status = inFlight
		} else {
			t.calls[i].Status = s
		}
	}
	t.next = len(t.calls)
	t.settle()
}

// giveBack settles a task whose remaining calls certainly have no effect.
func (t *task) giveBack() {
	t.undone = true
	t.settle()
}

// queue is what waits for a round, in order of arrival, bounded by requests and
// bytes.
type queue struct {
	mu       sync.Mutex
	tasks    []*task
	calls    int // requests that wait
	bytes    int64
	maxCalls int
	maxBytes int64
	closed   bool
	want     int           // wake the rounds when so many tasks wait
	wake     chan struct{} // capacity 1
}

func (q *queue) init(maxCalls int, maxBytes int64) {
	q.maxCalls, q.maxBytes = maxCalls, maxBytes
	q.wake = make(chan struct{}, 1)
	q.want = 1
}

// push adds a task; Busy if it is over the bounds, TryAgain after close.
func (q *queue) push(t *task) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(t.calls) - t.next
	switch {
	case q.closed:
		return TryAgain
	case q.calls+n > q.maxCalls || q.bytes+t.bytes > q.maxBytes:
		return Busy
	}
	t.upTo = t.next
	t.undone = false
	t.state.Store(waiting)
	q.tasks = append(q.tasks, t)
	q.calls += n
	q.bytes += t.bytes
	if len(q.tasks) >= q.want {
		q.signal()
	}
	return OK
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take moves tasks of up to max calls (at least one task) to dst.
func (q *queue) take(dst []*task, max int) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, i := 0, 0
	for ; i < len(q.tasks) && (i == 0 || n+len(q.tasks[i].calls)-q.tasks[i].next <= max); i++ {
		t := q.tasks[i]
		n += len(t.calls) - t.next
		q.bytes -= t.bytes
		t.state.Store(deciding)
		dst = append(dst, t)
	}
	q.calls -= n
	q.drop(i)
	return dst
}

// putBack returns tasks that their round did not finish to the front, in order.
func (q *queue) putBack(ts []*task) {
	if len(ts) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range ts {
		t.upTo = t.next
		t.state.Store(waiting)
		q.calls += len(t.calls) - t.next
		q.bytes += t.bytes
	}
	q.tasks = append(append(make([]*task, 0, len(ts)+len(q.tasks)), ts...), q.tasks...)
	q.signal()
}

// expired takes out the tasks that are over their deadline.
func (q *queue) expired(now int64, dst []*task) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := q.tasks[:0]
	for _, t := range q.tasks {
		if t.deadline > now {
			kept = append(kept, t)
			continue
		}
		q.calls -= len(t.calls) - t.next
		q.bytes -= t.bytes
		t.state.Store(settled)
		dst = append(dst, t)
	}
	clear(q.tasks[len(kept):])
	q.tasks = kept
	return dst
}

// takeAll empties the queue.
func (q *queue) takeAll() []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	ts := q.tasks
	for _, t := range ts {
		t.state.Store(settled)
	}
	q.tasks, q.calls, q.bytes = nil, 0, 0
	return ts
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.tasks)
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// drop removes the first n tasks and keeps the memory.
func (q *queue) drop(n int) {
	m := copy(q.tasks, q.tasks[n:])
	clear(q.tasks[m:])
	q.tasks = q.tasks[:m]
}
