package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"limitd/bench/load"
	"limitd/proc"
)

// comparison is a row: single calls of limitd, all admitted or all denied, over those of a peer.
type comparison struct {
	name           string
	bound, stretch float64 // 0: none
	denied         bool
	start          starter
}

// load is what the peer is asked: as many keys as limitd, and limits that decide alike.
func (c comparison) load() peerLoad {
	if c.denied {
		return peerLoad{limit: "denied", most: 1, period: 24 * time.Hour, keys: deniedAtLeader.keys}
	}
	return peerLoad{limit: "admitted", most: 1_000_000, period: time.Hour, keys: admittedAtLeader.keys}
}

func (c comparison) measure(ctx context.Context, e *env) (res *result, err error) {
	e.filled = false
	res = &result{name: c.name, unit: "calls/s", bound: c.bound, stretch: c.stretch, free: c.bound == 0, ratio: true}
	p, err := e.startPeer(ctx, c.start)
	if err != nil {
		return res.lacks(err)
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	res.other = p.kind
	ours := admittedAtLeader
	if c.denied {
		ours = deniedAtLeader
	}
	if err := ours.prepare(ctx, e); err != nil {
		return nil, err
	}
	theirs, err := c.prepare(ctx, e, p)
	if err != nil {
		return nil, err
	}
	res.note("%s; asked by %d clients on %d connections, the best of %d ways", p.about, theirs.clients, theirs.conns, len(p.clients))
	next := command{before: []string{"CL.THROTTLE"}, after: words(ours.args), keys: ours.keys}.next()
	for range e.rounds {
		var mine *load.Result
		ourCPU, err := cpuOf(e.cluster.Procs(), func() (err error) {
			mine, err = e.single(ctx, next, !c.denied)
			return err
		})
		if err != nil {
			return nil, err
		}
		var base *counted
		theirCPU, err := cpuOf(p.procs, func() (err error) {
			base, err = e.drivePeer(ctx, p, theirs)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := c.check(base); err != nil {
			return nil, err
		}
		res.add(mine.Rate(), base.Rate)
		res.note("p50 and p99: limitd %v and %v, %s %v and %v; processor time of a call, all servers together: about %.0f and %.0f µs",
			mine.Quantile(0.5), mine.Quantile(0.99), p.kind, base.P50, base.P99, e.perCall(ourCPU, mine.Rate()), e.perCall(theirCPU, base.Rate))
	}
	return res, nil
}

// cpuOf is the processor time that some processes use while f runs.
func cpuOf(procs []*proc.Process, f func() error) (used time.Duration, err error) {
	for _, p := range procs {
		before, err := cpuTime(p)
		if err != nil {
			return 0, err
		}
		used -= before
	}
	if err := f(); err != nil {
		return 0, err
	}
	for _, p := range procs {
		after, err := cpuTime(p)
		if err != nil {
			return 0, err
		}
		used += after
	}
	return used, nil
}

// perCall is the part of a processor time in µs that one call had, if the warm-up went at
// the rate that was measured.
func (e *env) perCall(cpu time.Duration, rate float64) float64 {
	span := e.plan(load.Plan{})
	return micro(cpu) / (rate * (span.Warmup + span.Time).Seconds())
}

// prepare uses up the keys that are to be denied, and finds how the peer is asked best.
func (c comparison) prepare(ctx context.Context, e *env, p *peer) (peerLoad, error) {
	l := c.load()
	if c.denied {
		l.asking, l.calls = asking{16, 16}, l.keys
		if n, err := e.drivePeer(ctx, p, l); err != nil {
			return l, err
		} else if n.Allowed != int64(l.keys) {
			return l, fmt.Errorf("%s admitted %d of %d first calls", p.kind, n.Allowed, l.keys)
		}
	}
	l.calls, l.time = 0, tuneTime
	best, highest := asking{}, -1.0
	for _, way := range p.clients {
		l.asking = way
		n, err := e.drivePeer(ctx, p, l)
		if err != nil {
			return l, err
		}
		if n.Rate > highest {
			best, highest = way, n.Rate
		}
	}
	l.asking, l.time = best, 0
	return l, nil
}

// check makes sure that a peer decided what the name of the row says.
func (c comparison) check(n *counted) error {
	if n.Allowed+n.Denied == 0 || c.denied && n.Allowed > 0 || !c.denied && n.Denied > 0 {
		return fmt.Errorf("%s: %d calls were allowed and %d denied", c.name, n.Allowed, n.Denied)
	}
	return nil
}

// single is limitd's side: 500 connections to the leader, one call at a time on each.
func (e *env) single(ctx context.Context, next func([]byte, *rand.Rand) []byte, allowed bool) (*load.Result, error) {
	leader, err := e.cluster.AwaitReady(ctx)
	if err != nil {
		return nil, err
	}
	return drive(ctx, e.plan(load.Plan{Addrs: []string{leader.Addr}, Conns: peerClients, Next: next}), allowed)
}

// accuracyOfPeer is admitted / limit of a peer to which nothing happens.
func accuracyOfPeer(name string, start starter) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (res *result, err error) {
		res = &result{name: "admitted / limit of " + name, free: true, worst: true, digits: 4}
		p, err := e.startPeer(ctx, start)
		if err != nil {
			return res.lacks(err)
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		res.note("%s", p.about)
		for i := range min(e.rounds, 3) {
			n, err := e.drivePeer(ctx, p, peerLoad{
				asking: asking{accuracyClients, accuracyClients}, limit: "accuracy", most: accuracyLimit, period: 24 * time.Hour,
				keys: accuracyKeys, prefix: fmt.Sprintf("accuracy:%d", i), calls: accuracyKeys * accuracyLimit * 3 / 2,
			})
			if err != nil {
				return nil, err
			}
			res.add(float64(n.Allowed) / (accuracyKeys * accuracyLimit))
		}
		return res, nil
	}
}
