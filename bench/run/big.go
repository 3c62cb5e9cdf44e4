package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"limitd/bench/load"
	"limitd/proc"
	"limitd/proc/nodes"
)

// bigKey has 24 bytes.
func bigKey(i int) string { return fmt.Sprintf("big:%020d", i) }

// fill charges e.bigKeys keys once, if that was not done yet.
func (e *env) fill(ctx context.Context) error {
	if e.filled {
		return nil
	}
	leader, err := e.cluster.AwaitReady(ctx)
	if err != nil {
		return err
	}
	if err := leader.Client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	began := time.Now()
	err = seedKeys(ctx, leader.Client, e.bigKeys, bigKey, func(key string) []any {
		return []any{"CL.THROTTLE", key, 0, 1, 86400, 1}
	})
	if err != nil {
		return err
	}
	fmt.Printf("\n%d keys of %d bytes charged in %.0f s\n", e.bigKeys, len(bigKey(0)), time.Since(began).Seconds())
	e.filled = true
	_, err = e.cluster.AwaitReady(ctx)
	return err
}

// memoryTable is what the table of a node takes for one of many keys.
func memoryTable(ctx context.Context, e *env) (*result, error) {
	return e.perNode(ctx, "memory of a live key of 24 bytes in the table (the worst node)", "bytes", 64, 56, func(n *nodes.Node) (float64, error) {
		fields, err := n.Info(ctx)
		if err != nil {
			return 0, err
		}
		keys, err1 := strconv.ParseFloat(fields["keys"], 64)
		size, err2 := strconv.ParseFloat(fields["table_bytes"], 64)
		if err := errors.Join(err1, err2); err != nil || keys < float64(e.bigKeys) {
			return 0, fmt.Errorf("%s: INFO says keys:%s table_bytes:%s (%v)", n.ID, fields["keys"], fields["table_bytes"], err)
		}
		return size / keys, nil
	})
}

// memoryProcess is what the process takes with them, beyond what files back.
func memoryProcess(ctx context.Context, e *env) (*result, error) {
	return e.perNode(ctx, fmt.Sprintf("RssAnon of a node with %d live keys (the worst node)", e.bigKeys), "MB", 1200, 0, func(n *nodes.Node) (float64, error) {
		b, err := rssAnon(n.Proc)
		return float64(b) / 1e6, err
	})
}

func (e *env) perNode(ctx context.Context, name, unit string, bound, stretch float64, figure func(*nodes.Node) (float64, error)) (*result, error) {
	if err := e.fill(ctx); err != nil {
		return nil, err
	}
	res := &result{name: name, unit: unit, bound: bound, stretch: stretch, worst: true}
	for _, n := range e.cluster.Nodes {
		v, err := figure(n)
		if err != nil {
			return nil, err
		}
		res.add(v)
	}
	return res, nil
}

// pauses are the longest waits of calls beside a snapshot of many keys.
func pausesOfDenials(ctx context.Context, e *env) (*result, error) {
	return e.besideASnapshot(ctx, "p99.9 of a denial with many live keys and a snapshot running", 5, 0,
		command{before: []string{"CL.THROTTLE"}, after: words("0 1 86400 1"), keys: e.bigKeys}, false, 2000)
}

func pausesOfAdmissions(ctx context.Context, e *env) (*result, error) {
	return e.besideASnapshot(ctx, "p99.9 of an admission with many live keys and a snapshot running", 100, 50,
		command{before: []string{"CL.THROTTLE"}, after: words("1000000 1000 3600 1"), keys: 100_000}, true, 1000)
}

func (e *env) besideASnapshot(ctx context.Context, name string, bound, stretch float64, c command, allowed bool, rate float64) (*result, error) {
	if err := e.fill(ctx); err != nil {
		return nil, err
	}
	if !allowed {
		c.name = bigKey
	}
	res := &result{name: name, unit: "ms", bound: bound, stretch: stretch}
	for range e.rounds {
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return nil, err
		}
		// Charge a part of the keys again, so that the snapshot has much to write.
		if err := touch(ctx, leader, e.bigKeys/20); err != nil {
			return nil, err
		}
		saved := make(chan error, 1)
		go func() { saved <- leader.Client.Do(ctx, "RL.SNAPSHOT", "SAVE").Err() }()
		began := time.Now()
		r, err := drive(ctx, load.Plan{Addrs: []string{leader.Addr}, Conns: 50, Rate: rate, Time: max(time.Second, time.Duration(float64(loadTime)*e.scale)), Next: c.next()}, allowed)
		if err != nil {
			return nil, err
		}
		if err := <-saved; err != nil {
			return nil, fmt.Errorf("RL.SNAPSHOT SAVE: %w", err)
		}
		res.add(float64(r.Quantile(0.999)) / 1e6)
		res.note("p50 %v, p99 %v; load and snapshot took %.1f s", r.Quantile(0.5), r.Quantile(0.99), time.Since(began).Seconds())
	}
	return res, nil
}

// touch changes n of the keys: it charges them once more than they have room for otherwise.
func touch(ctx context.Context, leader *nodes.Node, n int) error {
	from := rand.IntN(max(1, n))
	return seedKeys(ctx, leader.Client, n, func(i int) string { return bigKey(from + i) }, func(key string) []any {
		return []any{"CL.THROTTLE", key, 1000, 1, 86400, 1}
	})
}

// restartBig is the time from the start of a follower to its first answer, with many keys.
func restartBig(ctx context.Context, e *env) (*result, error) {
	if err := e.fill(ctx); err != nil {
		return nil, err
	}
	leader, err := e.cluster.Leader(ctx)
	if err != nil {
		return nil, err
	}
	n := e.cluster.Other(leader)
	res := &result{name: fmt.Sprintf("restart with %d live keys: first answer (SIGTERM, then kill -9)", e.bigKeys), unit: "s", bound: 15, stretch: 8, worst: true}
	for _, end := range []func() error{n.Stop, n.Kill} {
		if _, err := e.cluster.AwaitReady(ctx); err != nil {
			return nil, err
		}
		if err := end(); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := e.cluster.StartNode(n); err != nil {
			return nil, err
		}
		err := proc.Await(ctx, n.ID+" does not answer after a start", restartPatience, func(ctx context.Context) error { return denies(ctx, n, bigKey(e.bigKeys-1)) }, n.Proc)
		if err != nil {
			return nil, err
		}
		res.add(time.Since(began).Seconds())
	}
	_, err = e.cluster.AwaitReady(ctx)
	return res, err
}
