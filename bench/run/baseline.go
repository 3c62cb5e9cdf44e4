package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"

	"limitd/bench"
)

// baseline is a Redis server without persistence that holds the script.
type baseline struct {
	addr, sha string
	proc      *process
	client    *redis.Client
}

func startBaseline(ctx context.Context, dir string) (*baseline, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return nil, err
	}
	b := &baseline{addr: addrs[0], client: newClient(addrs[0])}
	b.proc, err = start("redis-server", filepath.Join(dir, "redis.log"), "redis-server",
		"--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
	if err != nil {
		return nil, fmt.Errorf("%w (Debian: apt-get install redis-server redis-tools)", err)
	}
	err = await(ctx, "redis-server does not answer", readyPatience, func(ctx context.Context) error {
		b.sha, err = b.client.ScriptLoad(ctx, bench.GCRA).Result()
		return err
	}, b.proc)
	if err == nil {
		err = b.check(ctx)
	}
	if err != nil {
		b.proc.kill()
		return nil, err
	}
	return b, nil
}

// call is the script as redis-benchmark sends it.
func (b *baseline) call(args ...string) []string {
	return append([]string{"EVALSHA", b.sha, "1"}, args...)
}

// check makes sure that what runs there is the script, on a server that keeps
// nothing on disk.
func (b *baseline) check(ctx context.Context) error {
	pid, err := info(ctx, b.client, "server")
	if err != nil {
		return err
	}
	if got, want := pid["process_id"], fmt.Sprint(b.proc.cmd.Process.Pid); got != want {
		return fmt.Errorf("%s is answered by process %s, not by the redis-server started for this (%s)", b.addr, got, want)
	}
	for i, want := range []string{"[0 2 1 -1 60]", "[0 2 0 -1 120]", "[1 2 0 60 120]"} {
		got, err := b.client.EvalSha(ctx, b.sha, []string{"check"}, 1, 1, 60, 1).Result()
		if err != nil {
			return err
		}
		if fmt.Sprint(got) != want {
			return fmt.Errorf("bench/gcra.lua answers call %d with %v, not %s", i, got, want)
		}
	}
	return b.client.Del(ctx, "check").Err()
}

// written is how many SETs the server has done: the admitted calls.
func (b *baseline) written(ctx context.Context) (int64, error) {
	fields, err := info(ctx, b.client, "commandstats")
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
