package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// patience is how long connecting and the last answers may take together.
const patience = 60 * time.Second

// plan is a load.
type plan struct {
	clients, conns, keys int
	prefix               string
	calls                int64
	warmup, time         time.Duration
}

func (p *plan) check() error {
	for name, v := range map[string]int64{"clients": int64(p.clients), "conns": int64(p.conns), "keys": int64(p.keys)} {
		if v < 1 {
			return fmt.Errorf("-%s %d: it must be 1 or more", name, v)
		}
	}
	if p.calls < 0 || p.warmup < 0 || p.time <= 0 {
		return fmt.Errorf("-calls %d -warmup %v -time %v: none may be negative, and -time not 0", p.calls, p.warmup, p.time)
	}
	return nil
}

// key is one of 24 bytes, for prefixes of three.
func (p *plan) key(i int) string { return fmt.Sprintf("%s:%020d", p.prefix, i) }

// run is the load: by time, or, if calls are given, so many of them and all counted.
func (p *plan) run(ctx context.Context, peer peer) *tally {
	from := time.Now()
	to := from.Add(patience)
	if p.calls == 0 {
		from = from.Add(p.warmup)
		to = from.Add(p.time)
	}
	keys := make([]string, p.keys)
	for i := range keys {
		keys[i] = p.key(i)
	}
	tallies := make([]tally, p.clients)
	var asked atomic.Int64
	var clients sync.WaitGroup
	for c := range tallies {
		t, rnd := &tallies[c], rand.New(rand.NewPCG(uint64(c), 1))
		t.latency = newHistogram()
		clients.Go(func() {
			for {
				sent := time.Now()
				if !sent.Before(to) || ctx.Err() != nil {
					return
				}
				i := int64(0)
				if p.calls > 0 {
					if i = asked.Add(1) - 1; i >= p.calls {
						return
					}
					i %= int64(p.keys)
				} else {
					i = int64(rnd.IntN(p.keys))
				}
				admitted, err := peer.decide(ctx, c%p.conns, keys[i])
				if !sent.Before(from) {
					t.count(admitted, err, time.Since(sent))
				}
			}
		})
	}
	clients.Wait()
	sum := &tally{latency: newHistogram(), took: p.time}
	if p.calls > 0 {
		sum.took = time.Since(from)
	}
	for i := range tallies {
		sum.merge(&tallies[i])
	}
	if n := sum.allowed + sum.denied + sum.errors; p.calls > 0 && n < p.calls {
		sum.count(false, fmt.Errorf("%d of %d calls in %v, and no time for more", n, p.calls, patience), 0)
	}
	return sum
}

// tally counts answers.
type tally struct {
	allowed, denied, errors int64
	firstError              string
	latency                 *hdrhistogram.Histogram // ns
	took                    time.Duration
}

// newHistogram reaches from a microsecond to a minute with two digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1000, 60e9, 2) }

func (t *tally) count(admitted bool, err error, took time.Duration) {
	switch {
	case err != nil:
		t.errors++
		if t.firstError == "" {
			t.firstError = err.Error()
		}
		return
	case admitted:
		t.allowed++
	default:
		t.denied++
	}
	t.latency.RecordValue(min(max(int64(took), 1000), 60e9))
}

func (t *tally) merge(o *tally) {
	t.allowed += o.allowed
	t.denied += o.denied
	t.errors += o.errors
	if t.firstError == "" {
		t.firstError = o.firstError
	}
	t.latency.Merge(o.latency)
}

// report is what is printed.
type report struct {
	Rate       float64       `json:"rate"` // answered calls (puts of etcd) a second
	Allowed    int64         `json:"allowed"`
	Denied     int64         `json:"denied"`
	Errors     int64         `json:"errors"`
	FirstError string        `json:"first_error,omitempty"`
	P50        time.Duration `json:"p50_ns"`
	P99        time.Duration `json:"p99_ns"`
}

func (t *tally) report() report {
	return report{
		Rate:    float64(t.allowed+t.denied) / t.took.Seconds(),
		Allowed: t.allowed, Denied: t.denied, Errors: t.errors, FirstError: t.firstError,
		P50: time.Duration(t.latency.ValueAtQuantile(50)), P99: time.Duration(t.latency.ValueAtQuantile(99)),
	}
}
