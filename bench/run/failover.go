package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	failoverMost     = 4.0 // s, median
	failoverPatience = 30 * time.Second
)

// failover kills the leader with SIGKILL and takes the time until another node
// admits a call: one client of that node, which calls again as soon as it was
// answered. The killed node is started again, and level, before the next kill.
func failover(ctx context.Context, e *env) (*result, error) {
	res := &result{name: "leader killed (kill -9): next success through another node", unit: "s", bound: failoverMost}
	for i := range e.kills {
		if err := e.cluster.awaitReady(ctx); err != nil {
			return nil, err
		}
		leader, err := e.cluster.leader(ctx)
		if err != nil {
			return nil, err
		}
		other := e.cluster.follower(leader)
		if err := admit(ctx, other.client, i); err != nil {
			return nil, fmt.Errorf("before the kill: %w", err)
		}
		began := time.Now()
		leader.proc.kill()
		err = await(ctx, fmt.Sprintf("no success through %s after %s was killed", other.id, leader.id), failoverPatience,
			func(ctx context.Context) error { return admit(ctx, other.client, i) }, other.proc)
		if err != nil {
			return nil, err
		}
		res.add(time.Since(began).Seconds())
		if err := e.cluster.start(ctx); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// admit is one call that is admitted if anything is.
func admit(ctx context.Context, client *redis.Client, i int) error {
	got, err := client.Do(ctx, "CL.THROTTLE", fmt.Sprintf("failover:%d", i), 1_000_000, 1000, 3600, 1).Int64Slice()
	if err != nil {
		return err
	}
	if len(got) != 5 || got[0] != 0 {
		return fmt.Errorf("%v: not admitted", got)
	}
	return nil
}
