package workload

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"limitd/jepsen/history"
)

// Config of a workload.
type Config struct {
	Seed     uint64
	Nodes    func() []string // that clients may ask, now
	Dial     Dialer
	Recorder *history.Recorder
	Workers  int           // connections
	Rate     float64       // operations per second of all workers together, at most
	Patience time.Duration // of a client, for the replies to one write; 0: 3 s
}

// Validate says what is missing, all at once.
func (c Config) Validate() error {
	var all []error
	need := func(ok bool, says string) {
		if !ok {
			all = append(all, errors.New("workload: "+says))
		}
	}
	need(c.Nodes != nil && c.Dial != nil && c.Recorder != nil, "Nodes, Dial and Recorder are needed")
	need(c.Workers > 0, "Workers must be at least 1")
	need(c.Rate > 0 && !math.IsInf(c.Rate, 0), "Rate must be above 0, in operations per second")
	need(c.Patience >= 0, "Patience must not be negative")
	return errors.Join(all...)
}

// pipelined is the longest pipeline of a worker.
const pipelined = 6

// Workload is a set of clients.
type Workload struct {
	c         Config
	processes int // numbers that clients have at the start; one that is replaced grows by that
	tag       atomic.Uint64

	drains [drainers]*client

	mu     sync.Mutex
	used   map[place]Key // keys that were asked of
	leader string        // as the nodes say; "" if none was found
	term   uint64        // of the leader
}

// place is where a key lies.
type place struct {
	ns   int
	name string
}

// New makes a workload, which does nothing yet. A configuration that is not valid is a
// mistake of the program, and panics.
func New(c Config) *Workload {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Patience == 0 {
		c.Patience = patience
	}
	w := &Workload{c: c, processes: c.Workers*pipelined + drainers*drainPipelined, used: map[place]Key{}}
	for i := range w.drains {
		w.drains[i] = w.client(c.Workers*pipelined+i*drainPipelined, drainPipelined)
	}
	return w
}

// Run asks until ctx ends, and until what was asked is answered or given up.
func (w *Workload) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range w.c.Workers {
		all.Go(func() { newWorker(w, i).run(ctx) })
	}
	all.Wait()
}

// client makes a client with as many processes, the first of which has that number.
func (w *Workload) client(first, processes int) *client {
	c := &client{w: w}
	for i := range processes {
		c.process = append(c.process, first+i)
	}
	return c
}

// call is a call on a key, with a tag of its own.
func (w *Workload) call(op *Operation, k Key, cmd []string) call {
	w.mu.Lock()
	w.used[place{k.NS, k.Name}] = k
	w.mu.Unlock()
	return call{op: op, key: k, cmd: cmd, tag: w.tag.Add(1)}
}

// leads notes that a node says it leads a term.
func (w *Workload) leads(node string, term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if term >= w.term {
		w.leader, w.term = node, term
	}
}

// leading is the leader, as far as clients know; "" if they do not.
func (w *Workload) leading() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leader
}

// sleep until then; false if ctx ended before.
func sleep(ctx context.Context, until time.Time) bool {
	if ctx.Err() != nil {
		return false
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
