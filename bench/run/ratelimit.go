package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"limitd/proc"
)

// ratelimitConfig has the limits of the loads. Its windows are aligned to the clock: a
// year is the longest.
const ratelimitConfig = `domain: bench
descriptors:
  - key: admitted
    rate_limit: {unit: year, requests_per_unit: 1000000}
  - key: denied
    rate_limit: {unit: year, requests_per_unit: 1}
  - key: accuracy
    rate_limit: {unit: year, requests_per_unit: %d}
`

// startRatelimit starts envoyproxy/ratelimit and the Redis that it counts in, which keeps
// nothing on disk. With a local cache it answers for keys that are used up by itself.
func startRatelimit(localCache bool) starter {
	return func(ctx context.Context, e *env) (p *peer, err error) {
		if err := installed("redis-server", "apt-get install redis-server"); err != nil {
			return nil, err
		}
		program, err := e.tool(ctx, "ratelimit", "peers/ratelimit", "github.com/envoyproxy/ratelimit/src/service_cmd")
		if err != nil {
			return nil, err
		}
		addrs, err := proc.FreeAddrs(4)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(e.dir, "ratelimit-")
		if err != nil {
			return nil, err
		}
		if err := writeLimits(dir); err != nil {
			return nil, err
		}
		p = &peer{kind: "ratelimit", addrs: addrs[:1], clients: grpcClients,
			about: fmt.Sprintf("envoyproxy/ratelimit %s, one process, on a redis-server that keeps nothing on disk", versionOf(program))}
		defer func() {
			if err != nil {
				err = errors.Join(err, p.stop())
			}
		}()
		port := make([]string, len(addrs))
		for i, addr := range addrs {
			_, port[i], _ = net.SplitHostPort(addr)
		}
		const host = "127.0.0.1"
		if err := p.startRedis(ctx, dir, addrs[1]); err != nil {
			return nil, err
		}
		env := []string{
			"GRPC_HOST=" + host, "GRPC_PORT=" + port[0], "HOST=" + host, "PORT=" + port[2], "DEBUG_HOST=" + host, "DEBUG_PORT=" + port[3],
			"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + addrs[1], "REDIS_POOL_SIZE=50",
			"RUNTIME_ROOT=" + dir, "RUNTIME_SUBDIRECTORY=limits", "RUNTIME_WATCH_ROOT=false",
			"USE_STATSD=false", "LOG_LEVEL=warn",
		}
		if localCache {
			env = append(env, "LOCAL_CACHE_SIZE_IN_BYTES=67108864")
			p.about += ", local cache of 64 MiB"
		}
		server, err := proc.Start("ratelimit", filepath.Join(dir, "log"), env, program)
		if err != nil {
			return nil, err
		}
		p.procs = append([]*proc.Process{server}, p.procs...) // it ends before its Redis does
		return p, proc.Await(ctx, "ratelimit is not ready", readyPatience, func(ctx context.Context) error {
			_, err := httpGet(ctx, "http://"+addrs[2]+"/healthcheck")
			return err
		}, p.procs...)
	}
}

// writeLimits writes the configuration where ratelimit looks for it below its root.
func writeLimits(root string) error {
	dir := filepath.Join(root, "limits", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bench.yaml"), fmt.Appendf(nil, ratelimitConfig, accuracyLimit), 0o600)
}

// startRedis starts the Redis that ratelimit counts in.
func (p *peer) startRedis(ctx context.Context, dir, addr string) error {
	server, err := startServer(dir, addr)
	if err != nil {
		return err
	}
	p.procs = append(p.procs, server)
	client := newClient(addr)
	defer client.Close()
	return proc.Await(ctx, "the redis-server of ratelimit does not answer", readyPatience, func(ctx context.Context) error { return client.Ping(ctx).Err() }, server)
}
