package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"limitd/bench"
	"limitd/proc"
	"limitd/proc/nodes"
)

// baseline is a Redis server without persistence that holds the script or, in its place,
// has the module redis-cell.
type baseline struct {
	addr, sha string
	cell      bool
	proc      *proc.Process
	client    *redis.Client
}

func startBaseline(ctx context.Context, dir string) (*baseline, error) {
	return startRedis(ctx, dir, "")
}

// startRedis starts a baseline with a module, if it is given the file of one.
func startRedis(ctx context.Context, dir, module string) (*baseline, error) {
	addrs, err := proc.FreeAddrs(1)
	if err != nil {
		return nil, err
	}
	b := &baseline{addr: addrs[0], client: newClient(addrs[0]), cell: module != ""}
	var args []string
	if b.cell {
		args = []string{"--loadmodule", module}
	}
	if b.proc, err = startServer(dir, b.addr, args...); err != nil {
		return nil, err
	}
	err = proc.Await(ctx, "redis-server does not answer", readyPatience, func(ctx context.Context) error {
		b.sha, err = b.client.ScriptLoad(ctx, bench.GCRA).Result()
		return err
	}, b.proc)
	if err == nil {
		err = b.check(ctx)
	}
	if err != nil {
		b.proc.Kill()
		return nil, err
	}
	return b, nil
}

// call is the script, or the module's command, as redis-benchmark sends it.
func (b *baseline) call(args ...string) []string {
	if b.cell {
		return append([]string{"CL.THROTTLE"}, args...)
	}
	return append([]string{"EVALSHA", b.sha, "1"}, args...)
}

func (b *baseline) what() string {
	if b.cell {
		return "redis-cell"
	}
	return "bench/gcra.lua"
}

// check makes sure that what runs there is the script, on a server that keeps
// nothing on disk.
func (b *baseline) check(ctx context.Context) error {
	pid, err := nodes.Info(ctx, b.client, "server")
	if err != nil {
		return err
	}
	if got, want := pid["process_id"], fmt.Sprint(b.proc.PID()); got != want {
		return fmt.Errorf("%s is answered by process %s, not by the redis-server started for this (%s)", b.addr, got, want)
	}
	for i, want := range [][]int64{{0, 2, 1, -1, 60}, {0, 2, 0, -1, 120}, {1, 2, 0, 60, 120}} {
		got, err := b.client.Do(ctx, anys(b.call("check", "1", "1", "60", "1"))...).Int64Slice()
		if err != nil {
			return err
		}
		if b.cell { // its seconds are rounded down, and depend on when it is asked
			got, want = got[:min(3, len(got))], want[:3]
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s answers call %d with %v, not %v", b.what(), i, got, want)
		}
	}
	return b.client.Del(ctx, "check").Err()
}

// written is how many SETs the server has done: the admitted calls.
func (b *baseline) written(ctx context.Context) (int64, error) {
	fields, err := nodes.Info(ctx, b.client, "commandstats")
	if err != nil {
		return 0, err
	}
	stat, ok := fields["cmdstat_set"]
	if !ok {
		return 0, nil
	}
	var n int64
	_, err = fmt.Sscanf(stat, "calls=%d", &n)
	if err != nil {
		return 0, fmt.Errorf("cmdstat_set:%s: %w", strings.TrimSpace(stat), err)
	}
	return n, nil
}
