package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"limitd/proc/nodes"
)

// rates measures one load against limitd and against the script, in turns.
type rates struct {
	name     string
	minimum  float64 // of the ratio
	stretch  float64 // what would be better still
	keys     int
	ours     int // requests of one run: about as many seconds for both
	baseline int
	args     string // after key:__rand_int__, the same for both
	admitted bool   // all calls are; else none is, every key having been charged before
	follower bool   // ask a follower, not the leader
}

var (
	admittedAtLeader = rates{
		name: "all admitted, at the leader", minimum: 2.5, stretch: 3.2, keys: 100_000, ours: 1_500_000, baseline: 500_000,
		args: "1000000 1000 3600 1", admitted: true,
	}
	deniedAtLeader = rates{
		name: "all denied, at the leader", minimum: 8, stretch: 10, keys: 1000, ours: 4_000_000, baseline: 600_000,
		args: "0 1 86400 1",
	}
	deniedAtFollower = rates{
		name: "all denied, at a follower", minimum: 8, stretch: 10, keys: 1000, ours: 4_000_000, baseline: 600_000,
		args: "0 1 86400 1", follower: true,
	}
)

func (r rates) measure(ctx context.Context, e *env) (*result, error) {
	res := &result{name: r.name, unit: "calls/s", bound: r.minimum, stretch: r.stretch, ratio: true}
	return res, r.compare(ctx, e, e.baseline, res)
}

// compare adds the rounds of both sides to a result.
func (r rates) compare(ctx context.Context, e *env, b *baseline, res *result) error {
	if err := r.prepareBoth(ctx, e, b); err != nil {
		return err
	}
	ours := benchmark{e.scaled(r.ours), r.keys, append(words("CL.THROTTLE key:__rand_int__"), words(r.args)...)}
	theirs := benchmark{e.scaled(r.baseline), r.keys, b.call(append(words("key:__rand_int__"), words(r.args)...)...)}
	for range e.rounds {
		mine, err := r.run(ctx, e, ours)
		if err != nil {
			return err
		}
		base, err := r.runBaseline(ctx, e, b, theirs)
		if err != nil {
			return err
		}
		res.add(mine, base)
	}
	return nil
}

// runBaseline is one load on the other side, with a look at what it did.
func (r rates) runBaseline(ctx context.Context, e *env, b *baseline, l benchmark) (float64, error) {
	if b.cell {
		return r.runCell(ctx, e, b, l)
	}
	before, err := b.written(ctx)
	if err != nil {
		return 0, err
	}
	rate, err := l.run(ctx, b.addr)
	if err != nil {
		return 0, err
	}
	after, err := b.written(ctx)
	if err != nil {
		return 0, err
	}
	return rate, r.check("the script", int(after-before), l.requests)
}

// prepare empties limitd and the script and, for denials, charges every key once.
func (r rates) prepare(ctx context.Context, e *env) error { return r.prepareBoth(ctx, e, e.baseline) }

func (r rates) prepareBoth(ctx context.Context, e *env, b *baseline) error {
	leader, err := e.cluster.Leader(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(leader.Client.FlushAll(ctx).Err(), b.client.FlushAll(ctx).Err()); err != nil {
		return fmt.Errorf("empty both sides: %w", err)
	}
	e.filled = false
	if r.admitted {
		return nil
	}
	err = seed(ctx, leader.Client, r.keys, func(key string) []any {
		return anys(append([]string{"CL.THROTTLE", key}, words(r.args)...))
	})
	if err != nil {
		return err
	}
	return seed(ctx, b.client, r.keys, func(key string) []any {
		return anys(b.call(append([]string{key}, words(r.args)...)...))
	})
}

// run is one load on limitd, on a cluster that is level, with a look at what it
// did.
func (r rates) run(ctx context.Context, e *env, l benchmark) (float64, error) {
	leader, err := e.cluster.AwaitReady(ctx)
	if err != nil {
		return 0, err
	}
	target := leader
	if r.follower {
		target = e.cluster.Other(leader)
	}
	before, err := admittedBy(ctx, e.cluster)
	if err != nil {
		return 0, err
	}
	rate, err := l.run(ctx, target.Addr)
	if err != nil {
		return 0, err
	}
	after, err := admittedBy(ctx, e.cluster)
	if err != nil {
		return 0, err
	}
	if now, err := e.cluster.Leader(ctx); err != nil || now != leader {
		return 0, fmt.Errorf("%s led when the load began, but not when it ended (%v)", leader.ID, err)
	}
	return rate, r.check("limitd", after-before, l.requests)
}

// check makes sure that the load did what its name says.
func (r rates) check(who string, admitted, requests int) error {
	if r.admitted && admitted < requests {
		return fmt.Errorf("%s admitted %d of %d calls that should all be", who, admitted, requests)
	}
	if !r.admitted && admitted != 0 {
		return fmt.Errorf("%s admitted %d calls where all should be denied", who, admitted)
	}
	return nil
}

// admittedBy is the number of calls that the nodes have admitted since they
// started, whichever node was asked.
func admittedBy(ctx context.Context, c *nodes.Cluster) (int, error) {
	sum := 0
	for _, n := range c.Nodes {
		fields, err := n.Info(ctx)
		if err != nil {
			return 0, err
		}
		v, err := strconv.Atoi(fields["allowed"])
		if err != nil {
			return 0, fmt.Errorf("%s: INFO says allowed:%q", n.ID, fields["allowed"])
		}
		sum += v
	}
	return sum, nil
}
