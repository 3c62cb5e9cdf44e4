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

// memoryProcess is the most that a process takes with them, beyond what files back: when they were just charged, and while it saves a
// snapshot of a twentieth of them.
func memoryProcess(ctx context.Context, e *env) (*result, error) {
	if err := e.fill(ctx); err != nil {
		return nil, err
	}
	charged, err := e.rssAnon()
	if err != nil {
		return nil, err
	}
	leader, err := e.cluster.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.touch(ctx, leader); err != nil {
		return nil, err
	}
	most, err := e.whileSaving(ctx)
	if err != nil {
		return nil, err
	}
	res := &result{name: fmt.Sprintf("RssAnon of a node with %d live keys, just charged or saving (the worst node)", e.bigKeys), unit: "MB", bound: 1200, worst: true}
	for i, n := range e.cluster.Nodes {
		res.add(max(charged[i], most[i]))
		res.note("%s: %.0f MB when they were just charged, at most %.0f MB while all nodes saved", n.ID, charged[i], most[i])
	}
	return res, nil
}

// rssAnon is RssAnon of each node, in MB.
func (e *env) rssAnon() ([]float64, error) {
	all := make([]float64, len(e.cluster.Nodes))
	for i, n := range e.cluster.Nodes {
		b, err := rssAnon(n.Proc)
		if err != nil {
			return nil, err
		}
		all[i] = float64(b) / 1e6
	}
	return all, nil
}

// whileSaving is the largest rssAnon of each node while all of them save.
func (e *env) whileSaving(ctx context.Context) ([]float64, error) {
	saved := make(chan error, len(e.cluster.Nodes))
	for _, n := range e.cluster.Nodes {
		go func() { saved <- saveAll(ctx, n) }()
	}
	most := make([]float64, len(e.cluster.Nodes))
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for saving := len(e.cluster.Nodes); saving > 0; {
		select {
		case err := <-saved:
			if err != nil {
				return nil, err
			}
			saving--
		case <-look.C:
		}
		now, err := e.rssAnon()
		if err != nil {
			return nil, err
		}
		for i := range most {
			most[i] = max(most[i], now[i])
		}
	}
	return most, nil
}

// savePatience bounds a save, which is long with many keys, as it gives way to all else.
const savePatience = 5 * time.Minute

// saveAll has the node write its snapshot, of all keys, and a copy of it.
func saveAll(ctx context.Context, n *nodes.Node) error {
	if err := n.Client.WithTimeout(savePatience).Do(ctx, "RL.SNAPSHOT", "SAVE").Err(); err != nil {
		return fmt.Errorf("%s: RL.SNAPSHOT SAVE: %w", n.ID, err)
	}
	return nil
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
		if err := e.touch(ctx, leader); err != nil {
			return nil, err
		}
		saved := make(chan error, 1)
		go func() {
			time.Sleep(loadWarmup)
			saved <- saveAll(ctx, leader)
		}()
		began := time.Now()
		var all *load.Result
		for saving := true; saving; { // the load goes on until the save is over
			r, err := drive(ctx, load.Plan{Addrs: []string{leader.Addr}, Conns: 50, Rate: rate, Warmup: loadWarmup, Time: max(time.Second, time.Duration(float64(loadTime)*e.scale)), Next: c.next()}, allowed)
			if err != nil {
				return nil, err
			}
			if all != nil {
				r.Latency.Merge(all.Latency)
			}
			all = r
			select {
			case err := <-saved:
				if err != nil {
					return nil, err
				}
				saving = false
			default:
			}
		}
		res.add(float64(all.Quantile(0.999)) / 1e6)
		res.note("p50 %v, p99 %v, at most %v; load and snapshot took %.1f s", all.Quantile(0.5), all.Quantile(0.99), all.Quantile(1), time.Since(began).Seconds())
	}
	return res, nil
}

// touch changes a twentieth of the keys, everywhere among them: it charges them once more than they have room for otherwise.
func (e *env) touch(ctx context.Context, leader *nodes.Node) error {
	const among = 20
	from := rand.IntN(among)
	return seedKeys(ctx, leader.Client, e.bigKeys/among, func(i int) string { return bigKey(from + among*i) }, func(key string) []any {
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
