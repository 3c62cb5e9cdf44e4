// Package load drives servers that speak RESP2 and measures them: each connection as
// fast as it is answered, with any number of commands in a row, or all together at a
// fixed rate of arrivals.
//
// At a fixed rate the load is open: a command is due at its moment whether or not
// those before it are answered, and its latency counts from that moment. A server that
// stands still for a second thus owes a second to every command that was due meanwhile
// (the "coordinated omission" of loads that wait for their answers hides all but one).
package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Plan is one run.
type Plan struct {
	Addrs    []string      // host:port; the connections are dealt out to them in turn
	Conns    int           // connections in all
	Pipeline int           // commands that a connection sends in one write and awaits together; 0: 1
	Rate     float64       // arrivals per second in all; 0: as fast as answered
	Warmup   time.Duration // sent and not measured
	Time     time.Duration // measured

	// Next appends a command to b. It is called by one goroutine for each connection.
	Next func(b []byte, rnd *rand.Rand) []byte
	// Replies of what Next appends, if that is several commands that count as one: the
	// first reply says what was decided, and the last one when. 0: 1.
	Replies int
	// Admits says of a reply that is no error what was decided, by its first two integers
	// (a CL.THROTTLE begins with 0 if allowed, an RL.TAKE with 1); nil: the former.
	Admits func(first int64) bool
}

// Result is what a run measured, after its warm-up.
type Result struct {
	Allowed, Denied, Errors int64
	Codes                   map[string]int64 // of the errors, by their first word
	FirstError              string
	Took                    time.Duration
	Latency                 *hdrhistogram.Histogram // ns
}

// Rate is the decisions per second.
func (r *Result) Rate() float64 { return float64(r.Allowed+r.Denied) / r.Took.Seconds() }

// Quantile is the latency that a part q of the commands did not exceed.
func (r *Result) Quantile(q float64) time.Duration {
	return time.Duration(r.Latency.ValueAtQuantile(100 * q))
}

// newHistogram reaches from a microsecond to a minute with three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1000, 60e9, 3) }

// histograms are so many that the connections seldom wait for one another, and not one for
// each: one has 200 KB, and the servers share the machine.
const histograms = 8

// latencies are those of some connections.
type latencies struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

func (l *latencies) record(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.histogram.RecordValue(min(max(int64(d), 1000), 60e9))
}

func (p *Plan) check() error {
	switch {
	case len(p.Addrs) == 0:
		return errors.New("load: no address")
	case p.Conns < 1:
		return fmt.Errorf("load: %d connections", p.Conns)
	case p.Time <= 0:
		return fmt.Errorf("load: a run of %v", p.Time)
	case p.Rate < 0, p.Rate > 0 && p.Pipeline > 1:
		return fmt.Errorf("load: a rate of %v with %d commands in a row: arrivals at a fixed rate come one by one", p.Rate, p.Pipeline)
	case p.Next == nil:
		return errors.New("load: no command")
	}
	return nil
}

// Run does what the plan says. An error is one of the plan or of connecting; a
// connection that breaks later ends with the error in the result.
func Run(ctx context.Context, p Plan) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Pipeline == 0 {
		p.Pipeline = 1
	}
	if p.Replies == 0 {
		p.Replies = 1
	}
	if p.Admits == nil {
		p.Admits = func(first int64) bool { return first == 0 }
	}
	conns := make([]*conn, p.Conns)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.nc.Close()
			}
		}
	}()
	for i := range conns {
		c, err := dial(ctx, p.Addrs[i%len(p.Addrs)])
		if err != nil {
			return nil, err
		}
		conns[i] = c
	}
	shared := make([]*latencies, min(p.Conns, histograms))
	for i := range shared {
		shared[i] = &latencies{histogram: newHistogram()}
	}
	began := time.Now()
	c := clock{from: began.Add(p.Warmup), to: began.Add(p.Warmup + p.Time)}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range conns {
			c.nc.Close()
		}
	})
	defer stop()
	if p.Rate > 0 {
		beat, end := context.WithCancel(ctx)
		defer end()
		go metronome(beat)
	}
	var wg sync.WaitGroup
	for i, cn := range conns {
		cn.tally = tally{latency: shared[i%len(shared)], clock: c, admits: p.Admits, replies: p.Replies, codes: map[string]int64{}}
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		if p.Rate > 0 {
			wg.Go(func() { cn.open(&p, i, began, rnd) })
		} else {
			wg.Go(func() { cn.closed(&p, rnd) })
		}
	}
	wg.Wait()
	r := &Result{Latency: newHistogram(), Took: p.Time, Codes: map[string]int64{}}
	for _, cn := range conns {
		t := &cn.tally
		r.Allowed += t.allowed
		r.Denied += t.denied
		r.Errors += t.errors
		if r.FirstError == "" {
			r.FirstError = t.firstError
		}
		for code, n := range t.codes {
			r.Codes[code] += n
		}
	}
	for _, l := range shared {
		r.Latency.Merge(l.histogram)
	}
	return r, ctx.Err()
}
