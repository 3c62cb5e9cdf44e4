package main

import (
	"context"
	"errors"
	"path/filepath"

	"limitd/proc/nodes"
)

// walAdmitted compares the load of the row admitted on the nodes of all rows, and on
// nodes with the other log store.
func walAdmitted(ctx context.Context, e *env) (res *result, err error) {
	e.filled = false
	c, err := nodes.New(nodes.Config{Dir: filepath.Join(e.dir, "bolt"), Program: e.cluster.Program, Settings: "[raft]\nlog_store = \"bolt\"\n\n"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if _, err := c.Start(ctx); err != nil {
		return nil, err
	}
	r := admittedAtLeader
	if err := r.prepare(ctx, e); err != nil {
		return nil, err
	}
	other := &env{cluster: c, baseline: e.baseline, scale: e.scale}
	l := benchmark{e.scaled(r.ours), r.keys, append(words("CL.THROTTLE key:__rand_int__"), words(r.args)...)}
	res = &result{name: `admitted with raft.log_store = "wal", the default / with "bolt"`, unit: "calls/s", ratio: true, free: true, other: "bolt"}
	for range e.rounds {
		mine, err := r.run(ctx, e, l)
		if err != nil {
			return nil, err
		}
		bolt, err := r.run(ctx, other, l)
		if err != nil {
			return nil, err
		}
		res.add(mine, bolt)
	}
	return res, nil
}
