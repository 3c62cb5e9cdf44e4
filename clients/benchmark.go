package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"

	"limitd/proc/nodes"
)

// redis-benchmark shows no replies and stops at the first error, so that the
// server says what it has charged, after a part of the limit and after three times as much.

// benchmark runs it; limit is that of the key.
func benchmark(ctx context.Context, at *nodes.Node, as login, n, depth int, key string, limit int, more ...string) error {
	host, port, err := net.SplitHostPort(at.Addr)
	if err != nil {
		return err
	}
	args := []string{"-h", host, "-p", port, "-c", "1", "-q", "-n", fmt.Sprint(n), "-P", fmt.Sprint(depth)}
	if as.user != "" {
		args = append(args, "--user", as.user)
	}
	if as.password != "" {
		args = append(args, "-a", as.password)
	}
	args = append(append(args, more...), "CL.THROTTLE", key, fmt.Sprint(limit-1), "1", "86400")
	out, err := exec.CommandContext(ctx, "redis-benchmark", args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "rror") {
		return fmt.Errorf("redis-benchmark %v: %v\n%s", args, err, out)
	}
	return nil
}

// generateOnce makes one call by each protocol.
func (m *matrix) generateOnce(ctx context.Context, r *row, at *nodes.Node, as login) error {
	out, err := exec.CommandContext(ctx, "redis-benchmark", "--version").Output()
	if err != nil {
		return err
	}
	r.version, r.resp = strings.Fields(string(out))[1], "2 and RESP3"
	key := "connect:redis-benchmark:" + as.user + as.password
	if err := benchmark(ctx, at, as, 1, 1, key, m.limit); err != nil {
		return err
	}
	if err := benchmark(ctx, at, as, 1, 1, key, m.limit, "-3"); err != nil {
		return err
	}
	return left(ctx, at, int64(m.limit-2), "CL.THROTTLE", key, m.limit-1, 1, 86400, 0)
}

// generate makes 3·limit calls, one by one or in pipelines.
func (m *matrix) generate(ctx context.Context, r *row, at *nodes.Node, what cell) error {
	limit, depth := m.limit, 1
	if what == pipeline {
		limit = m.pipelined / 3
		depth = limit / 3
	}
	key, part := keysFor(r, what, 0).plain, limit/3
	if err := benchmark(ctx, at, login{}, part, depth, key, limit); err != nil {
		return err
	}
	if err := left(ctx, at, int64(limit-part), "CL.THROTTLE", key, limit-1, 1, 86400, 0); err != nil {
		return err
	}
	if err := benchmark(ctx, at, login{}, 3*limit-part, depth, key, limit); err != nil {
		return err
	}
	return left(ctx, at, 0, "CL.THROTTLE", key, limit-1, 1, 86400, 0)
}
