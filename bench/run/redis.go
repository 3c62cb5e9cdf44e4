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
	"limitd/proc"
	"limitd/proc/nodes"
)

// readyPatience bounds every wait for a server to answer.
const readyPatience = nodes.Patience

// trio is a Redis that syncs each write to its append-only file, with two replicas that
// do the same: what comes closest to three nodes of limitd. A call counts once WAIT 1
// says that one replica has it; that it has it on disk too, WAIT does not say.
type trio struct {
	addr, sha string
	procs     []*proc.Process
}

func startTrio(ctx context.Context, dir string) (t *trio, err error) {
	addrs, err := proc.FreeAddrs(3)
	if err != nil {
		return nil, err
	}
	t = &trio{addr: addrs[0]}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.stop())
		}
	}()
	for i, addr := range addrs {
		args := []string{"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"}
		if i > 0 {
			args = append(args, replicaOf(addrs[0])...)
		}
		p, err := startServer(filepath.Join(dir, fmt.Sprintf("redis-%d", i)), addr, args...)
		if err != nil {
			return nil, err
		}
		t.procs = append(t.procs, p)
	}
	client := newClient(t.addr)
	defer client.Close()
	return t, proc.Await(ctx, "the replicas of redis-server are not there", readyPatience, func(ctx context.Context) error {
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

func (t *trio) stop() error { return proc.StopAll(t.procs...) }

// startServer starts a redis-server whose data and log lie in dir. It writes nothing to
// the disk but its log, if more settings do not say so.
func startServer(dir, addr string, more ...string) (*proc.Process, error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	p, err := proc.Start("redis-server", filepath.Join(dir, "redis.log"), nil, "redis-server",
		append([]string{"--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("%w (Debian: apt-get install redis-server redis-tools)", err)
	}
	return p, nil
}

// replicaOf are the settings of a replica.
func replicaOf(addr string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return []string{"--replicaof", host, port}
}

// newClient is a client of a server without a password.
func newClient(addr string) *redis.Client { return nodes.NewClient(addr, "") }
