package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"limitd/proc"
	"limitd/proc/nodes"
)

const (
	joinMost        = 15.0 // s, median
	joinDenialsMost = 2.0  // p99 during a join over p99 before, median
	joinPatience    = 2 * time.Minute
	joinBefore      = 10 * time.Second // of load, before each join

	// tooOld is how many entries a follower may lack and still be given the log: a
	// node that joins after more of them needs the snapshot.
	tooOld = 10_240
)

// joined is what one join took, and what other clients noticed of it.
type joined struct {
	took           time.Duration // from the start of the process to its vote
	before, during time.Duration // p99 of denials
}

// join is the time in which a new node gets its vote.
func join(ctx context.Context, e *env) (*result, error) {
	res := &result{name: fmt.Sprintf("a node joins %d live keys under load: from its start to its vote", e.keys), unit: "s", bound: joinMost}
	return res, e.eachJoin(ctx, func(j joined) { res.add(j.took.Seconds()) })
}

// joinDenials is what a join costs the denials of other clients.
func joinDenials(ctx context.Context, e *env) (*result, error) {
	res := &result{name: "denials of other clients while a node joins: p99 over p99 before", unit: "×", bound: joinDenialsMost}
	return res, e.eachJoin(ctx, func(j joined) {
		res.add(j.during.Seconds() / j.before.Seconds())
		res.note("p99 before %s, during the join %s", j.before.Round(time.Microsecond), j.during.Round(time.Microsecond))
	})
}

// eachJoin shows what the joins took; the first row that asks has them done.
func (e *env) eachJoin(ctx context.Context, show func(joined)) error {
	if e.joins == nil {
		joins, err := measureJoins(ctx, e)
		if err != nil {
			return err
		}
		e.joins = joins
	}
	for _, j := range e.joins {
		show(j)
	}
	return nil
}

// measureJoins fills the cluster, and has a fourth node join it once per round. It
// gets the state as a snapshot, because the log does not begin at the beginning
// any more, and is removed again.
func measureJoins(ctx context.Context, e *env) ([]joined, error) {
	leader, err := e.cluster.AwaitReady(ctx)
	if err != nil {
		return nil, err
	}
	if err := leader.Client.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	err = seed(ctx, leader.Client, e.keys, func(key string) []any { return []any{"CL.THROTTLE", key, 0, 1, 86400, 1} })
	if err != nil {
		return nil, err
	}
	for range tooOld + 1000 { // one entry each
		if err := admit(ctx, leader.Client, 0); err != nil {
			return nil, fmt.Errorf("entries of the log: %w", err)
		}
	}
	for _, n := range e.cluster.Nodes {
		if err := n.Client.Do(ctx, "RL.SNAPSHOT", "SAVE").Err(); err != nil { // cuts the log off
			return nil, fmt.Errorf("%s: RL.SNAPSHOT SAVE: %w", n.ID, err)
		}
	}
	var joins []joined
	for i := range e.rounds {
		j, err := joinOnce(ctx, e.cluster, e.keys, fmt.Sprintf("n%d", 4+i))
		if err != nil {
			return nil, err
		}
		joins = append(joins, j)
	}
	return joins, nil
}

// joinOnce has one node join under load, and removes it.
func joinOnce(ctx context.Context, c *nodes.Cluster, keys int, id string) (j joined, err error) {
	leader, err := c.AwaitReady(ctx)
	if err != nil {
		return j, err
	}
	n, err := c.Another(id)
	if err != nil {
		return j, err
	}
	load := startDenials(ctx, c.Nodes, keys)
	defer load.stop()
	select {
	case <-ctx.Done():
		return j, ctx.Err()
	case <-time.After(joinBefore):
	}
	if j.before, err = load.p99(); err != nil {
		return j, err
	}
	began := time.Now()
	err = n.Serve(c.Program, "--node", n.ID, "--listen", n.Addr, "--peer-listen", n.Peer, "--data-dir", n.Data, "--join", leader.Addr)
	if err != nil {
		return j, err
	}
	defer n.Kill()
	err = proc.Await(ctx, n.ID+" does not get its vote", joinPatience, func(ctx context.Context) error {
		if i, err := n.Info(ctx); err != nil {
			return err
		} else if i["raft_role"] != "follower" || i["ready"] != "1" {
			return fmt.Errorf("it is a %s (ready: %s)", i["raft_role"], i["ready"])
		}
		return denies(ctx, n, keyName(keys-1)) // and has the state
	}, n.Proc)
	if err != nil {
		return j, err
	}
	j.took = time.Since(began)
	if j.during, err = load.p99(); err != nil {
		return j, err
	}
	if err := leader.Client.Do(ctx, "RL.CLUSTER", "REMOVE", n.ID).Err(); err != nil {
		return j, fmt.Errorf("remove %s: %w", n.ID, err)
	}
	if err := n.Stop(); err != nil {
		return j, err
	}
	return j, os.RemoveAll(n.Data)
}
