package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"limitd/algo"
	"limitd/limiter"
	"limitd/trace"
)

// key that clients ask about, always under one limit.
type key struct {
	name  string
	limit algo.Limit
}

// clients are those of the cluster: each asks one node after the other, and asks
// nothing twice but what has an ID.
type clients struct {
	w       *world
	keys    []key
	tags    atomic.Uint64
	hurry   atomic.Bool // they think less
	done    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	served  time.Time     // the newest answer
	longest time.Duration // between two
}

const (
	clientCount = 5
	think       = 800 * time.Millisecond // on average, between two chunks of a client
)

// known are the keys that everybody asks about.
func (c *clients) known() []key {
	if c.keys == nil {
		for _, k := range []struct {
			name                 string
			burst, count, period int64
		}{{"hot", 4, 1, 1}, {"hot-slow", 9, 1, 7}, {"warm-1", 2, 3, 1}, {"warm-2", 19, 7, 3}, {"warm-3", 0, 1, 2}} {
			l, err := algo.NewThrottle(k.burst, k.count, k.period)
			if err != nil {
				panic(err)
			}
			c.keys = append(c.keys, key{k.name, l})
		}
	}
	return c.keys
}

func (c *clients) start(w *world) {
	c.w, c.done, c.served = w, make(chan struct{}), time.Now()
	for i := range clientCount {
		rng := rand.New(rand.NewPCG(w.seed, streamClients+uint64(i)))
		c.running.Go(func() { c.run(rng) })
	}
}

func (c *clients) stop() {
	close(c.done)
	c.running.Wait()
}

func (c *clients) run(rng *rand.Rand) {
	var chunk limiter.Chunk
	var ids named
	for {
		pause := time.Duration(rng.ExpFloat64() * float64(think))
		if c.hurry.Load() || rng.IntN(3) == 0 {
			pause /= 12
		}
		select {
		case <-c.done:
			return
		case <-time.After(pause):
		}
		p := c.w.machines[rng.IntN(len(c.w.machines))].up()
		if p == nil || p.frozen() {
			continue
		}
		chunk.Reset()
		for range 1 + rng.IntN(4)/3*rng.IntN(4) {
			if rng.IntN(5) < 2 {
				c.drawLimited(rng, &chunk, chunk.Add(), &ids)
			} else {
				c.draw(rng, chunk.Add())
			}
		}
		c.ask(p, &chunk)
		c.again(p, &chunk)
	}
}

// draw makes a call.
func (c *clients) draw(rng *rand.Rand, call *limiter.Call) {
	k := c.keys[min(rng.IntN(len(c.keys)), rng.IntN(len(c.keys)))]
	name := k.name
	if rng.IntN(10) == 0 {
		name = fmt.Sprintf("cold-%d", rng.IntN(1000))
	}
	*call = limiter.Call{Op: limiter.Take, Key: []byte(name), Limit: k.limit, Cost: 1, Tag: c.tags.Add(1)}
	switch n := rng.IntN(100); {
	case n < 20:
		call.Cost = 1 + rng.Int64N(k.limit.Burst+1)
	case n < 28:
		call.Cost = 0
	case n < 34:
		call.Cost = -1 - rng.Int64N(3)
	case n < 37:
		call.Op, call.Limit = limiter.Reset, algo.Limit{}
		call.More = [][]byte{[]byte("cold-1")}
	case n < 41:
		call.Op, call.Limit = limiter.Exists, algo.Limit{}
	case n < 45:
		call.Op, call.Limit = limiter.TTL, algo.Limit{}
	}
}

// slack is what an answer may take beyond the request timeout.
const slack = 100 * time.Millisecond

// ask has a chunk answered, and has the oracle judge what it is told.
func (c *clients) ask(p *process, chunk *limiter.Chunk) {
	begun := time.Now()
	p.limiter.Do(chunk)
	if took := time.Since(begun); took > limiter.DefaultConfig().RequestTimeout+slack && !p.ending.Load() {
		c.w.fail("%s took %s for an answer", p.name, took)
	}
	served := false
	for i := range chunk.Calls {
		a := toldOf(&chunk.Calls[i])
		served = served || a.status == "ok"
		if p.ending.Load() { // whether the answer came out, nobody knows
			a.status = "info"
		}
		c.w.oracle.told(&a)
	}
	if served {
		c.mu.Lock()
		now := time.Now()
		if !c.served.IsZero() {
			c.longest = max(c.longest, now.Sub(c.served))
		}
		c.served = now
		c.mu.Unlock()
	}
}

func toldOf(call *limiter.Call) ask {
	a := ask{tag: call.Tag, status: call.Status.Code(), text: call.Status.Error(), answer: trace.Call{N: call.N}}
	if call.Op == limiter.Take {
		v := &call.Verdict
		a.answer.Allowed, a.answer.Remaining, a.answer.Retry, a.answer.Reset, a.answer.Delay = v.Allowed, v.Remaining, v.RetryAfter, v.ResetAfter, v.Delay
	}
	if call.Op == limiter.List {
		a.list = listOf(call)
	}
	if call.Op == limiter.TakeAll {
		a.answer.Allowed, a.answer.Retry = call.Verdict.Allowed, call.Verdict.RetryAfter
		for i := range call.Parts {
			v := &call.Parts[i].Verdict
			a.answer.Parts = append(a.answer.Parts, trace.Part{Allowed: v.Allowed, Remaining: v.Remaining, Retry: v.RetryAfter, Reset: v.ResetAfter, Delay: v.Delay})
		}
	}
	return a
}

// probe asks a machine once about a key.
func (c *clients) probe(m *machine, k key) error {
	p := m.up()
	if p == nil {
		return errors.New("no process runs")
	}
	var chunk limiter.Chunk
	*chunk.Add() = limiter.Call{Op: limiter.Take, Key: []byte(k.name), Limit: k.limit, Cost: 1, Tag: c.tags.Add(1)}
	if c.w == nil {
		c.w = m.w
	}
	c.ask(p, &chunk)
	if s := chunk.Calls[0].Status; s != limiter.OK {
		return s
	}
	return nil
}
