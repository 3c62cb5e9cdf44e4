package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"limitd/jepsen/history"
)

// Config of a workload.
type Config struct {
	Seed     uint64
	Nodes    func() []string // that clients may ask, now
	Dial     func(node string, timeout time.Duration) (net.Conn, error)
	Recorder *history.Recorder
	Workers  int     // connections; at most 8 ask one hot key at a time
	Rate     float64 // operations per second of all workers together, at most
}

// slots is how many operations a worker may have open: the longest pipeline.
const slots = 6

// Workload is a set of clients.
type Workload struct {
	c       Config
	tag     atomic.Uint64
	process []int // of each worker's slots
}

// New makes a workload; Run starts it.
func New(c Config) *Workload {
	w := &Workload{c: c}
	for i := range c.Workers * slots {
		w.process = append(w.process, i)
	}
	return w
}

// Run asks until ctx ends.
func (w *Workload) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range w.c.Workers {
		all.Go(func() { w.work(ctx, i) })
	}
	all.Wait()
}

// work is one worker: it draws an operation, or a pipeline of them, when its time
// has come. What could not be sent in time is not made up for.
func (w *Workload) work(ctx context.Context, worker int) {
	r := rand.New(rand.NewPCG(w.c.Seed, 1000+uint64(worker)))
	gap := time.Duration(float64(time.Second) * float64(w.c.Workers) / w.c.Rate)
	pinned := worker%3 == 0
	var c *conn
	var node string
	next := 0
	due := time.Now().Add(time.Duration(r.Int64N(int64(gap))))
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		n := 1
		if r.IntN(10) == 0 {
			n = 2 + r.IntN(slots-1)
		}
		due = maxTime(due, time.Now().Add(-gap)).Add(time.Duration(n) * gap)
		if c != nil && !pinned && r.IntN(20) == 0 { // users move too
			c.Close()
			c = nil
		}
		var ops []history.Event
		for i := range n {
			ops = append(ops, w.operation(r, worker, i, &next))
		}
		if c == nil {
			nodes := w.c.Nodes()
			node = nodes[r.IntN(len(nodes))]
			if pinned {
				node = nodes[worker%len(nodes)]
			}
		}
		c = w.do(c, node, worker, ops)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// operation draws what is asked.
func (w *Workload) operation(r *rand.Rand, worker, slot int, next *int) history.Event {
	n := r.IntN(100)
	op := Operations[len(Operations)-1]
	for _, o := range Operations {
		if n < o.Share {
			op = o
			break
		}
		n -= o.Share
	}
	k := draw(r, worker, next)
	if op.F == "reset" && !k.Resets {
		op = Operations[0]
	}
	return history.Event{Process: w.process[worker*slots+slot], F: op.F, Tag: w.tag.Add(1), Key: k.Name, Cmd: op.Make(r, k)}
}

// do asks for ops in one write, each behind its tag, and records what becomes of
// them. It returns the connection, nil if it is of no use any more.
func (w *Workload) do(c *conn, node string, worker int, ops []history.Event) *conn {
	rec := w.c.Recorder
	for i := range ops {
		ops[i].Node = node
		ops[i].Type = history.Invoke
		rec.Event(ops[i])
	}
	end := func(i int, t history.Type, reply any, err error) {
		e := history.Event{Type: t, Process: ops[i].Process, F: ops[i].F, Tag: ops[i].Tag, Node: node, Key: ops[i].Key, Reply: reply}
		if err != nil {
			e.Error = err.Error()
		}
		rec.Event(e)
		if t == history.Info {
			w.process[worker*slots+i] += w.c.Workers * slots
		}
	}
	rest := func(from int, t history.Type, err error) *conn {
		for i := from; i < len(ops); i++ {
			end(i, t, nil, err)
		}
		if c != nil {
			c.Close()
		}
		return nil
	}
	if c == nil {
		nc, err := w.c.Dial(node, time.Second)
		if err != nil {
			time.Sleep(20 * time.Millisecond) // a node that is away is not asked in a circle
			return rest(0, history.Fail, err)
		}
		c = newConn(nc)
	}
	var b []byte
	for _, o := range ops {
		b = appendCommand(b, "RL.TRACE", fmt.Sprint(o.Tag))
		b = appendCommand(b, o.Cmd...)
	}
	c.SetDeadline(time.Now().Add(patience))
	if sent, err := c.Write(b); err != nil {
		if sent == 0 {
			return rest(0, history.Fail, err)
		}
		return rest(0, history.Info, err)
	}
	for i := range ops {
		if ok, err := c.reply(); err != nil || ok != "OK" {
			return rest(i, history.Info, fmt.Errorf("tag: %v, %w", ok, errOr(err)))
		}
		reply, err := c.reply()
		var said replyError
		switch {
		case err == nil:
			end(i, history.OK, reply, nil)
		case errors.As(err, &said):
			end(i, classify(string(said)), nil, err)
		default:
			return rest(i, history.Info, err)
		}
	}
	return c
}

func errOr(err error) error {
	if err == nil {
		return errors.New("not OK")
	}
	return err
}
