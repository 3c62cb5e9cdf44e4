package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"limitd/bench/load"
)

// cellFile is the module that -redis-cell-module names, as a path that a server can use
// that runs elsewhere; "" if none is named.
func cellFile(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	switch file, err := os.Stat(name); {
	case err != nil:
		return "", fmt.Errorf("-redis-cell-module: %w; give the library of github.com/brandur/redis-cell, which `cargo build --release` makes as target/release/libredis_cell.so", err)
	case !file.Mode().IsRegular():
		return "", fmt.Errorf("-redis-cell-module %s: not a file; give the library itself, libredis_cell.so", name)
	case file.Mode()&0o111 == 0:
		return "", fmt.Errorf("-redis-cell-module %s: redis-server loads only a module that it may execute: chmod +x %s", name, name)
	}
	return filepath.Abs(name)
}

// againstCell is a row of rates measured against redis-cell in place of the script.
func againstCell(r rates) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (res *result, err error) {
		e.filled = false
		res = &result{name: r.name + " / redis-cell", unit: "calls/s", ratio: true, free: true, other: "redis-cell"}
		if e.cellModule == "" {
			return res.lacks(missing("redis-cell is not there: build github.com/brandur/redis-cell (cargo build --release) and give -redis-cell-module target/release/libredis_cell.so"))
		}
		dir, err := os.MkdirTemp(e.dir, "redis-cell-")
		if err != nil {
			return nil, err
		}
		b, err := startRedis(ctx, dir, e.cellModule)
		if err != nil {
			return nil, fmt.Errorf("redis-server with -redis-cell-module %s: %w", e.cellModule, err)
		}
		defer func() { err = errors.Join(err, b.client.Close(), b.proc.Stop()) }()
		return res, r.compare(ctx, e, b, res)
	}
}

// cellProbe is how long redis-cell is asked what it decides.
const cellProbe = 500 * time.Millisecond

// runCell is one load on redis-cell. Its server does not count what it admits, and
// redis-benchmark does not look: so each load is followed by a short one of which every
// answer is looked at, with the same keys and arguments.
func (r rates) runCell(ctx context.Context, e *env, b *baseline, l benchmark) (float64, error) {
	rate, err := l.run(ctx, b.addr)
	if err != nil {
		return 0, err
	}
	next := command{before: b.call(), after: words(r.args), keys: r.keys}.next()
	if _, err := drive(ctx, load.Plan{Addrs: []string{b.addr}, Conns: 20, Pipeline: 64, Time: cellProbe, Next: next}, r.admitted); err != nil {
		return 0, fmt.Errorf("redis-cell, after a load that should be like this: %w", err)
	}
	return rate, nil
}
