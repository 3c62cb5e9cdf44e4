package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/proc"
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
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return nil, err
		}
		other := e.cluster.Other(leader)
		if err := admit(ctx, other.Client, i); err != nil {
			return nil, fmt.Errorf("before the kill: %w", err)
		}
		began := time.Now()
		if err := leader.Kill(); err != nil {
			return nil, err
		}
		err = proc.Await(ctx, fmt.Sprintf("no success through %s after %s was killed", other.ID, leader.ID), failoverPatience,
			func(ctx context.Context) error { return admit(ctx, other.Client, i) }, other.Proc)
		if err != nil {
			return nil, err
		}
		res.add(time.Since(began).Seconds())
		if _, err := e.cluster.Start(ctx); err != nil {
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
