package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"limitd/bench"
)

// trio is a Redis that syncs each write to its append-only file, with two replicas that
// do the same: what comes closest to three nodes of limitd. A call counts once WAIT 1
// says that one replica has it; that it has it on disk too, WAIT does not say.
type trio struct {
	addr, sha string
	procs     []*process
}

func startTrio(ctx context.Context, dir string) (t *trio, err error) {
	addrs, err := freeAddrs(3)
	if err != nil {
		return nil, err
	}
	t = &trio{addr: addrs[0]}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.stop())
		}
	}()
	host, first, _ := net.SplitHostPort(addrs[0])
	for i, addr := range addrs {
		_, port, _ := net.SplitHostPort(addr)
		data := filepath.Join(dir, fmt.Sprintf("redis-%d", i))
		if err := os.Mkdir(data, 0o700); err != nil {
			return nil, err
		}
		args := []string{"--bind", host, "--port", port, "--dir", data, "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"}
		if i > 0 {
			args = append(args, "--replicaof", host, first)
		}
		p, err := start("redis-server", filepath.Join(data, "log"), "redis-server", args...)
		if err != nil {
			return nil, err
		}
		t.procs = append(t.procs, p)
	}
	client := newClient(t.addr)
	defer client.Close()
	return t, await(ctx, "the replicas of redis-server are not there", readyPatience, func(ctx context.Context) error {
		if t.sha, err = client.ScriptLoad(ctx, bench.GCRA).Result(); err != nil {
			return err
		}
		return replicated(ctx, client, 2)
	}, t.procs...)
}

// replicated wants so many replicas to have what a Redis has.
func replicated(ctx context.Context, client *redis.Client, replicas int64) error {
	n, err := client.Do(ctx, "WAIT", replicas, 100).Int64()
	if err == nil && n < replicas {
		err = fmt.Errorf("%d of %d replicas", n, replicas)
	}
	return err
}

func (t *trio) stop() error {
	var errs []error
	for _, p := range t.procs {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}
