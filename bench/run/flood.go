package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"limitd/proc/nodes"
)

// The flood: clients that hammer at keys that are used up.
var flood = rates{name: "flood of denials", keys: 1000, ours: 4_000_000, args: "0 1 86400 1"}

// floodAllPorts compares the flood at all three nodes at once with the flood at one.
// Here they share the processors with three loads; elsewhere each node has its own.
func floodAllPorts(ctx context.Context, e *env) (*result, error) {
	if err := flood.prepare(ctx, e); err != nil {
		return nil, err
	}
	res := &result{name: "the flood over all three nodes' ports / over one", unit: "calls/s", bound: 0.6, ratio: true, other: "one port"}
	for range e.rounds {
		if _, err := e.cluster.AwaitReady(ctx); err != nil {
			return nil, err
		}
		l := benchmark{e.scaled(flood.ours) / len(e.cluster.Nodes), flood.keys, append(words("CL.THROTTLE key:__rand_int__"), words(flood.args)...)}
		sum, err := l.runAll(ctx, e.cluster.Nodes)
		if err != nil {
			return nil, err
		}
		l.requests = e.scaled(flood.ours)
		leader, err := e.cluster.Leader(ctx)
		if err != nil {
			return nil, err
		}
		one, err := l.run(ctx, leader.Addr)
		if err != nil {
			return nil, err
		}
		res.add(sum, one)
	}
	return res, nil
}

// runAll is the load at all nodes at once; the rate is that of all together.
func (l benchmark) runAll(ctx context.Context, nodes []*nodes.Node) (float64, error) {
	began := time.Now()
	var waits []func() (float64, error)
	var errs []error
	for _, n := range nodes {
		wait, err := l.start(ctx, n.Addr)
		if err != nil {
			errs = append(errs, err)
			break
		}
		waits = append(waits, wait)
	}
	for _, wait := range waits {
		_, err := wait()
		errs = append(errs, err)
	}
	return float64(l.requests*len(nodes)) / time.Since(began).Seconds(), errors.Join(errs...)
}

// floodCPU is the processor time of a denial on each node; the worst node counts.
func floodCPU(ctx context.Context, e *env) (*result, error) {
	if err := flood.prepare(ctx, e); err != nil {
		return nil, err
	}
	res := &result{name: "processor time of a denial, pipelined, on the node that is asked (the worst node)", unit: "µs", bound: 0.6}
	l := benchmark{e.scaled(flood.ours), flood.keys, append(words("CL.THROTTLE key:__rand_int__"), words(flood.args)...)}
	for range e.rounds {
		worst := 0.0
		for _, n := range e.cluster.Nodes {
			if _, err := e.cluster.AwaitReady(ctx); err != nil {
				return nil, err
			}
			before, err := cpuTime(n.Proc)
			if err != nil {
				return nil, err
			}
			if _, err := l.run(ctx, n.Addr); err != nil {
				return nil, err
			}
			after, err := cpuTime(n.Proc)
			if err != nil {
				return nil, err
			}
			worst = max(worst, (after-before).Seconds()*1e6/float64(l.requests))
		}
		res.add(worst)
	}
	return res, nil
}

// hotKey compares one key that all connections charge with 100,000 keys.
func hotKey(ctx context.Context, e *env) (*result, error) {
	many := admittedAtLeader
	many.args = "20000000 1000 1 1" // one key bears the whole load
	if err := many.prepare(ctx, e); err != nil {
		return nil, err
	}
	res := &result{name: "one hot key, pipelined / 100,000 keys, pipelined", unit: "calls/s", bound: 1.4, stretch: 2, ratio: true, other: "100,000 keys"}
	for i := range e.rounds {
		hot, err := many.run(ctx, e, benchmark{e.scaled(many.ours), 1, append(words(fmt.Sprintf("CL.THROTTLE hot:%d", i)), words(many.args)...)})
		if err != nil {
			return nil, fmt.Errorf("one key: %w", err)
		}
		spread, err := many.run(ctx, e, benchmark{e.scaled(many.ours), many.keys, append(words("CL.THROTTLE key:__rand_int__"), words(many.args)...)})
		if err != nil {
			return nil, err
		}
		res.add(hot, spread)
	}
	return res, nil
}
