package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/bench"
	"limitd/proc"
	"limitd/proc/nodes"
)

// A limit of accuracyLimit for each of accuracyKeys keys, which gives nothing back for a
// day, asked for half as often again by accuracyClients clients.
const (
	accuracyKeys    = 200
	accuracyLimit   = 100
	accuracyClients = 16
)

// decider asks once for a key; it says that the call was admitted, or an error.
type decider func(ctx context.Context, key string) (bool, error)

// admittedOver asks for every key half as often again as its limit, and returns what was
// admitted over the sum of the limits. When half is asked, fault is called, and the
// clients go on through it, with what ask is then.
func admittedOver(ctx context.Context, prefix string, ask decider, fault func() error) (float64, error) {
	const calls = accuracyKeys * accuracyLimit * 3 / 2
	var asked, admitted atomic.Int64
	var clients sync.WaitGroup
	var once sync.Once
	var failed error
	for range accuracyClients {
		clients.Go(func() {
			for ctx.Err() == nil {
				i := asked.Add(1)
				if i > calls {
					return
				}
				if i > calls/2 && fault != nil {
					once.Do(func() { failed = fault() })
				}
				for began := time.Now(); ; {
					ok, err := ask(ctx, fmt.Sprintf("%s:%d", prefix, i%accuracyKeys))
					if ok {
						admitted.Add(1)
					}
					// A call that failed is asked again, as a client would that must decide.
					if err == nil || ctx.Err() != nil || time.Since(began) > readyPatience {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	clients.Wait()
	return float64(admitted.Load()) / (accuracyKeys * accuracyLimit), errors.Join(failed, ctx.Err())
}

var accuracyCall = fmt.Sprintf("%d 1 86400 1", accuracyLimit-1)

// accuracy is admitted / limit of limitd without a fault; killed says through the death of its leader.
func accuracy(killed bool) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (*result, error) {
		e.filled = false
		res := &result{name: "admitted / limit", bound: 1, worst: true, digits: 4}
		if killed {
			res.name += ", the leader killed (kill -9) half-way"
		}
		for i := range min(e.rounds, 3) {
			leader, err := e.cluster.Start(ctx)
			if err != nil {
				return nil, err
			}
			client := e.cluster.Other(leader).Client
			ask := func(ctx context.Context, key string) (bool, error) {
				got, err := client.Do(ctx, append([]any{"CL.THROTTLE", key}, anys(words(accuracyCall))...)...).Int64Slice()
				return err == nil && got[0] == 0, err
			}
			fault := leader.Kill
			if !killed {
				fault = nil
			}
			v, err := admittedOver(ctx, fmt.Sprintf("accuracy:%v:%d", killed, i), ask, fault)
			if err != nil {
				return nil, err
			}
			res.add(v)
		}
		_, err := e.cluster.Start(ctx)
		return res, err
	}
}

// accuracyOfRedis is admitted / limit of the script through the death of its Redis: one
// that starts again, with what it has on disk, or a replica that takes over.
func accuracyOfRedis(name string, replica bool) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (*result, error) {
		res := &result{name: "admitted / limit of the script, " + name, free: true, worst: true, digits: 4}
		for i := range min(e.rounds, 3) {
			v, err := e.redisDies(ctx, i, replica)
			if err != nil {
				return nil, err
			}
			res.add(v)
		}
		return res, nil
	}
}

func (e *env) redisDies(ctx context.Context, i int, replica bool) (v float64, err error) {
	addrs, err := proc.FreeAddrs(2)
	if err != nil {
		return 0, err
	}
	var procs []*proc.Process
	defer func() { err = errors.Join(err, proc.StopAll(procs...)) }()
	run := func(addr string, more ...string) error {
		p, err := startServer(filepath.Join(e.dir, fmt.Sprintf("dies-%d-%v-%d", i, replica, len(procs))), addr, append(more, "--repl-diskless-sync-delay", "0")...)
		if err == nil {
			procs = append(procs, p)
		}
		return err
	}
	client := newClient(addrs[0])
	defer client.Close()
	var at atomic.Pointer[redis.Client]
	at.Store(client)
	load := func(c *redis.Client) error {
		return proc.Await(ctx, "redis-server does not answer", readyPatience, func(ctx context.Context) error { return c.ScriptLoad(ctx, bench.GCRA).Err() })
	}
	if err := run(addrs[0]); err != nil {
		return 0, err
	}
	if err := load(client); err != nil {
		return 0, err
	}
	fault := func() error {
		if err := procs[0].Kill(); err != nil {
			return err
		}
		if err := run(addrs[0]); err != nil {
			return err
		}
		return load(client)
	}
	if replica {
		if err := run(addrs[1], replicaOf(addrs[0])...); err != nil {
			return 0, err
		}
		other := newClient(addrs[1])
		defer other.Close()
		err := proc.Await(ctx, "the replica is not there", readyPatience, func(ctx context.Context) error { return replicated(ctx, client, 1) })
		if err != nil {
			return 0, err
		}
		fault = func() error {
			// A replica that follows: one that had never been level would be no fair comparison.
			err := proc.Await(ctx, "the replica does not follow", readyPatience, func(ctx context.Context) error {
				n, err := other.DBSize(ctx).Result()
				if err == nil && n < accuracyKeys {
					err = fmt.Errorf("it has %d of %d keys", n, accuracyKeys)
				}
				return err
			})
			if err != nil {
				return err
			}
			if err := procs[0].Kill(); err != nil {
				return err
			}
			// It takes over when it has read all that was sent to it: what is left in its
			// socket when it is promoted would be lost on top.
			err = proc.Await(ctx, "the replica does not notice", readyPatience, func(ctx context.Context) error {
				fields, err := nodes.Info(ctx, other, "replication")
				if err == nil && fields["master_link_status"] != "down" {
					err = fmt.Errorf("master_link_status:%s", fields["master_link_status"])
				}
				return err
			})
			if err != nil {
				return err
			}
			if err := other.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
				return err
			}
			at.Store(other)
			return load(other)
		}
	}
	ask := func(ctx context.Context, key string) (bool, error) {
		got, err := at.Load().Do(ctx, anys(append(e.baseline.call(key), words(accuracyCall)...))...).Int64Slice()
		return err == nil && got[0] == 0, err
	}
	return admittedOver(ctx, "accuracy", ask, fault)
}
