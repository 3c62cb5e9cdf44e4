package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"limitd/bench/load"
)

const (
	loadWarmup = time.Second
	loadTime   = 6 * time.Second
)

// command makes calls as RESP: words, with one key of many behind a prefix.
type command struct {
	before, after []string
	keys          int
	name          func(int) string // of a key; nil: keyName
}

func (c command) next() func([]byte, *rand.Rand) []byte {
	head := fmt.Appendf(nil, "*%d\r\n", len(c.before)+1+len(c.after))
	for _, w := range c.before {
		head = bulk(head, w)
	}
	var tail []byte
	for _, w := range c.after {
		tail = bulk(tail, w)
	}
	name := c.name
	if name == nil {
		name = keyName
	}
	return func(b []byte, rnd *rand.Rand) []byte {
		b = append(b, head...)
		b = bulk(b, name(rnd.IntN(c.keys)))
		return append(b, tail...)
	}
}

func bulk(b []byte, w string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(w)), 10)
	b = append(b, "\r\n"...)
	b = append(b, w...)
	return append(b, "\r\n"...)
}

// plan is a load for this run's length.
func (e *env) plan(p load.Plan) load.Plan {
	p.Warmup, p.Time = loadWarmup, max(time.Second, time.Duration(float64(loadTime)*e.scale))
	return p
}

// steady is a load at a fixed rate of which a quantile counts, and so one that is not
// too short: a single pause of 15 ms is 1 % of 1.5 s.
func (e *env) steady(p load.Plan) load.Plan {
	p = e.plan(p)
	p.Time = max(p.Time, 4*time.Second)
	return p
}

// drive runs a load that must be answered without an error, all calls allowed or none.
func drive(ctx context.Context, p load.Plan, allowed bool) (*load.Result, error) {
	r, err := load.Run(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case r.Errors > 0:
		return nil, fmt.Errorf("%d of the calls at %v failed: %s", r.Errors, p.Addrs, r.FirstError)
	case allowed && r.Denied > 0, !allowed && r.Allowed > 0:
		return nil, fmt.Errorf("%d calls at %v were allowed and %d denied", r.Allowed, p.Addrs, r.Denied)
	}
	return r, nil
}

// unpipelined compares 500 connections that send one call and await its answer.
func unpipelined(ctx context.Context, e *env) (res *result, err error) {
	all := admittedAtLeader
	if err := all.prepare(ctx, e); err != nil {
		return nil, err
	}
	t, err := startTrio(ctx, e.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	wait := []byte("*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$4\r\n1000\r\n")
	script := command{before: []string{"EVALSHA", t.sha, "1"}, after: words(all.args), keys: all.keys}.next()
	theirs := e.plan(load.Plan{Addrs: []string{t.addr}, Conns: 500, Replies: 2, Next: func(b []byte, rnd *rand.Rand) []byte {
		return append(script(b, rnd), wait...)
	}})
	res = &result{name: "500 connections, one call at a time, all admitted / Redis that syncs, two replicas, WAIT 1", unit: "calls/s", bound: 1, stretch: 1.5, ratio: true}
	for range e.rounds {
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return nil, err
		}
		mine, err := drive(ctx, e.plan(load.Plan{Addrs: []string{leader.Addr}, Conns: 500, Next: command{before: []string{"CL.THROTTLE"}, after: words(all.args), keys: all.keys}.next()}), true)
		if err != nil {
			return nil, err
		}
		base, err := drive(ctx, theirs, true)
		if err != nil {
			return nil, err
		}
		res.add(mine.Rate(), base.Rate())
		res.note("p50 and p99: limitd %v and %v, Redis %v and %v", mine.Quantile(0.5), mine.Quantile(0.99), base.Quantile(0.5), base.Quantile(0.99))
	}
	return res, nil
}

// denialP99 compares the p99 of denials that arrive at half the script's highest rate.
func denialP99(ctx context.Context, e *env) (*result, error) {
	d := deniedAtLeader
	if err := d.prepare(ctx, e); err != nil {
		return nil, err
	}
	script := command{before: e.baseline.call(), after: words(d.args), keys: d.keys}.next()
	at := []string{e.baseline.addr}
	highest, err := drive(ctx, e.plan(load.Plan{Addrs: at, Conns: 200, Next: script}), false)
	if err != nil {
		return nil, err
	}
	rate := highest.Rate() / 2
	res := &result{name: fmt.Sprintf("p99 of a denial, %.0f arrivals a second (half the script's highest rate) / the script's", rate), unit: "µs", bound: 1, ratio: true, less: true}
	for range e.rounds {
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return nil, err
		}
		mine, err := drive(ctx, e.steady(load.Plan{Addrs: []string{leader.Addr}, Conns: 200, Rate: rate, Next: command{before: []string{"CL.THROTTLE"}, after: words(d.args), keys: d.keys}.next()}), false)
		if err != nil {
			return nil, err
		}
		base, err := drive(ctx, e.steady(load.Plan{Addrs: at, Conns: 200, Rate: rate, Next: script}), false)
		if err != nil {
			return nil, err
		}
		res.add(micro(mine.Quantile(0.99)), micro(base.Quantile(0.99)))
		res.note("p50: limitd %v, the script %v", mine.Quantile(0.5), base.Quantile(0.5))
	}
	return res, nil
}

// admissionP99 compares the p99 of admissions at half the highest rate with what the
// disk makes of it: four syncs one after the other, two of the leader and two of a follower
// (one each, as the log is kept by default).
func admissionP99(ctx context.Context, e *env) (*result, error) {
	all := admittedAtLeader
	if err := all.prepare(ctx, e); err != nil {
		return nil, err
	}
	leader, err := e.cluster.Leader(ctx)
	if err != nil {
		return nil, err
	}
	next := command{before: []string{"CL.THROTTLE"}, after: words(all.args), keys: all.keys}.next()
	highest, err := drive(ctx, e.plan(load.Plan{Addrs: []string{leader.Addr}, Conns: 500, Next: next}), true)
	if err != nil {
		return nil, err
	}
	rate := highest.Rate() / 2
	res := &result{name: fmt.Sprintf("p99 of an admission, %.0f arrivals a second (half of the highest rate) / 4 syncs + 1 ms", rate), unit: "µs", bound: 3, ratio: true, less: true, other: "4 syncs + 1 ms,"}
	for range e.rounds {
		if _, err := e.cluster.AwaitReady(ctx); err != nil {
			return nil, err
		}
		alone, err := syncP99(ctx, e.dir, 500, 0)
		if err != nil {
			return nil, err
		}
		mine, err := drive(ctx, e.steady(load.Plan{Addrs: []string{leader.Addr}, Conns: 500, Rate: rate, Next: next}), true)
		if err != nil {
			return nil, err
		}
		res.add(micro(mine.Quantile(0.99)), micro(4*alone+time.Millisecond))
		res.note("p50 %v, p99.9 %v; p99 of a sync alone %v", mine.Quantile(0.5), mine.Quantile(0.999), alone)
	}
	return res, besideTheLoad(ctx, e, res, e.steady(load.Plan{Addrs: []string{leader.Addr}, Conns: 500, Rate: rate, Next: next}))
}

// besideTheLoad tells what the disk is like under a load. It is a run of its own: the
// syncs that it measures slow those of the nodes.
func besideTheLoad(ctx context.Context, e *env, res *result, p load.Plan) error {
	loaded, over := context.WithCancel(ctx)
	type outcome struct {
		p99 time.Duration
		err error
	}
	probe := make(chan outcome, 1)
	go func() {
		p99, err := syncP99(loaded, e.dir, math.MaxInt, 10*time.Millisecond)
		probe <- outcome{p99, err}
	}()
	mine, err := drive(ctx, p, true)
	over()
	beside := <-probe
	if err = errors.Join(err, beside.err); err == nil {
		res.note("not counted, with a sync every 10 ms beside the load: p99 of it %v, of an admission %v", beside.p99, mine.Quantile(0.99))
	}
	return err
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// syncP99 is the p99 of writing and syncing a page to the disk that the nodes use: most
// of them, one every so long, until ctx is done.
func syncP99(ctx context.Context, dir string, most int, every time.Duration) (time.Duration, error) {
	file := filepath.Join(dir, "sync")
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer os.Remove(file)
	defer f.Close()
	var times []time.Duration
	for len(times) < most {
		began := time.Now()
		if _, err := f.WriteAt(make([]byte, 4096), int64(len(times))*4096); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
		if every > 0 && pause(ctx, every) != nil {
			break
		}
	}
	slices.Sort(times)
	return times[len(times)*99/100], nil
}
