package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// grpcClients are the ways in which a limiter that speaks gRPC is asked, of which the best counts.
var grpcClients = []asking{{peerClients, peerClients}, {peerClients, 50}, {peerClients, 5}, {100, 10}}

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
		addrs, err := freeAddrs(4)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(e.dir, "ratelimit-")
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(dir, "limits", "config"), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "limits", "config", "bench.yaml"), fmt.Appendf(nil, ratelimitConfig, accuracyLimit), 0o600); err != nil {
			return nil, err
		}
		p = &peer{kind: "ratelimit", about: "envoyproxy/ratelimit, one process, on a redis-server that keeps nothing on disk", addrs: addrs[:1], clients: grpcClients}
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
		redis, err := start("redis-server of ratelimit", filepath.Join(dir, "redis.log"), "redis-server",
			"--bind", host, "--port", port[1], "--dir", dir, "--save", "", "--appendonly", "no")
		if err != nil {
			return nil, err
		}
		p.procs = append(p.procs, redis)
		client := newClient(addrs[1])
		defer client.Close()
		err = await(ctx, "the redis-server of ratelimit does not answer", readyPatience, func(ctx context.Context) error { return client.Ping(ctx).Err() }, redis)
		if err != nil {
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
		proc, err := startWith("ratelimit", filepath.Join(dir, "log"), env, program)
		if err != nil {
			return nil, err
		}
		p.procs = append([]*process{proc}, p.procs...) // it ends before its Redis does
		return p, await(ctx, "ratelimit is not ready", readyPatience, func(ctx context.Context) error {
			_, err := httpGet(ctx, "http://"+addrs[2]+"/healthcheck")
			return err
		}, p.procs...)
	}
}

// httpGet is the body of an answer with status 200.
func httpGet(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, r.Status, text)
	}
	return text, err
}
