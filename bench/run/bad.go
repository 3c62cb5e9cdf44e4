package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"limitd/bench/load"
	"limitd/proc/nodes"
)

// Bad days: the healthy work, admissions at a fixed rate beside denials at another,
// while something is wrong. What counts is the p99 of the work beside the p99 without.

const (
	healthyAdmissions = 2000 // a second
	healthyDenials    = 5000
)

// healthy is what the work measures.
type healthy struct{ admitted, denied *load.Result }

// work runs both loads at the node.
func (e *env) work(ctx context.Context, at *nodes.Node) (h healthy, err error) {
	type outcome struct {
		r   *load.Result
		err error
	}
	denied := make(chan outcome, 1)
	plan := func(rate float64, after string, keys int, name func(int) string) load.Plan {
		return e.plan(load.Plan{Addrs: []string{at.Addr}, Conns: 50, Rate: rate, Next: command{before: []string{"CL.THROTTLE"}, after: words(after), keys: keys, name: name}.next()})
	}
	go func() {
		r, err := drive(ctx, plan(healthyDenials, usedUp, deniedAtLeader.keys, nil), false)
		denied <- outcome{r, err}
	}()
	h.admitted, err = drive(ctx, plan(healthyAdmissions, withRoom, workloadKeys, func(i int) string { return keyName(1_000_000 + i) }), true)
	d := <-denied
	h.denied = d.r
	return h, errors.Join(err, d.err)
}

// badDay measures the work without and with what begin does to the cluster; end takes it back.
func badDay(name string, begin func(ctx context.Context, e *env, leader, follower *nodes.Node) (end func() error, err error)) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (*result, error) {
		e.filled = false
		if err := deniedAtLeader.prepare(ctx, e); err != nil {
			return nil, err
		}
		res := &result{name: "bad day: " + name + "; p99 of admissions beside / without", unit: "ms", ratio: true, free: true, other: "without,"}
		for range min(e.rounds, 3) {
			leader, err := e.cluster.AwaitReady(ctx)
			if err != nil {
				return nil, err
			}
			before, err := e.work(ctx, leader)
			if err != nil {
				return nil, err
			}
			end, err := begin(ctx, e, leader, e.cluster.Other(leader))
			if err != nil {
				return nil, err
			}
			beside, err := e.work(ctx, leader)
			if err = errors.Join(err, end()); err != nil {
				return nil, err
			}
			res.add(float64(beside.admitted.Quantile(0.99))/1e6, float64(before.admitted.Quantile(0.99))/1e6)
			res.note("p99 of denials %v beside, %v without; longest admission %v beside, %v without",
				beside.denied.Quantile(0.99), before.denied.Quantile(0.99), beside.admitted.Quantile(1), before.admitted.Quantile(1))
		}
		return res, nil
	}
}

func pausedFollower(_ context.Context, _ *env, _, follower *nodes.Node) (func() error, error) {
	return func() error { return follower.Proc.Signal(syscall.SIGCONT) }, follower.Proc.Signal(syscall.SIGSTOP)
}

// slowFollower makes each sync of a follower 20 ms longer.
func slowFollower(ctx context.Context, e *env, _, follower *nodes.Node) (func() error, error) {
	tracer := exec.CommandContext(ctx, "strace", "-f", "-qq", "-o", "/dev/null", "-p", strconv.Itoa(follower.Proc.PID()),
		"-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_exit=20000")
	if err := tracer.Start(); err != nil {
		return nil, fmt.Errorf("%w (Debian: apt-get install strace)", err)
	}
	return func() error {
		tracer.Process.Signal(syscall.SIGTERM)
		tracer.Wait() // of the signal
		return nil
	}, nil
}

// manyConnections is 10,000 connections that do nothing.
func manyConnections(ctx context.Context, _ *env, leader, _ *nodes.Node) (func() error, error) {
	var conns []net.Conn
	end := func() error {
		for _, c := range conns {
			c.Close()
		}
		return nil
	}
	for i := range 10_000 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}}
		c, err := d.DialContext(ctx, "tcp", leader.Addr)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		conns = append(conns, c)
	}
	return end, nil
}

// fullMemory measures the admissions of old keys beside a flood of new ones at max_memory.
func fullMemory(ctx context.Context, e *env) (res *result, err error) {
	dir := filepath.Join(e.dir, "full")
	c, err := nodes.New(nodes.Config{Dir: dir, Program: e.cluster.Program, Settings: "[limits]\nmax_memory = \"16MiB\"\n\n"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	leader, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	full := &env{cluster: c, baseline: e.baseline, rounds: e.rounds, scale: e.scale, dir: dir}
	if err := deniedAtLeader.prepare(ctx, full); err != nil {
		return nil, err
	}
	fill := load.Plan{Addrs: []string{leader.Addr}, Conns: 50, Pipeline: 64, Time: time.Second,
		Next: command{before: []string{"CL.THROTTLE"}, after: words(withRoom), keys: 1 << 40, name: func(n int) string { return fmt.Sprintf("fill:%d", n) }}.next()}
	// The keys of the work are there before the memory is full, and for long.
	err = seedKeys(ctx, leader.Client, workloadKeys, func(i int) string { return keyName(1_000_000 + i) }, func(key string) []any {
		return append([]any{"CL.THROTTLE", key}, anys(words(strings.TrimSuffix(withRoom, "1")+"500"))...)
	})
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		r, err := load.Run(ctx, fill)
		if err != nil {
			return nil, err
		}
		if r.Codes["OOM"] > 0 {
			break
		}
		if time.Since(began) > readyPatience {
			return nil, errors.New("max_memory was not reached")
		}
	}
	res = &result{name: "bad day: a flood of new keys at max_memory; p99 of admissions beside / without", unit: "ms", ratio: true, free: true, other: "without,"}
	for i := range min(e.rounds, 3) {
		before, err := full.work(ctx, leader)
		if err != nil {
			return nil, err
		}
		floodCtx, stop := context.WithCancel(ctx)
		flooded := make(chan *load.Result, 1)
		go func() {
			r, _ := load.Run(floodCtx, load.Plan{Addrs: []string{leader.Addr}, Conns: 20, Pipeline: 16, Time: time.Hour,
				Next: command{before: []string{"CL.THROTTLE"}, after: words(withRoom), keys: 1 << 40, name: func(n int) string { return fmt.Sprintf("flood:%d:%d", i, n) }}.next()})
			flooded <- r
		}()
		beside, err := full.work(ctx, leader)
		stop()
		f := <-flooded
		if err != nil {
			return nil, err
		}
		rss, err := rssAnon(leader.Proc)
		if err != nil {
			return nil, err
		}
		res.add(float64(beside.admitted.Quantile(0.99))/1e6, float64(before.admitted.Quantile(0.99))/1e6)
		res.note("the flood: %d admitted, %d refused with -OOM; RssAnon of the leader %d MB; p99 of denials %v beside, %v without",
			f.Allowed, f.Codes["OOM"], rss/1e6, beside.denied.Quantile(0.99), before.denied.Quantile(0.99))
	}
	return res, nil
}

// overload has three times as many calls outstanding as a node queues: it must answer what
// it takes, refuse the rest with -BUSY, hold its memory, and be well a second later.
func overload(ctx context.Context, e *env) (*result, error) {
	e.filled = false
	if err := deniedAtLeader.prepare(ctx, e); err != nil {
		return nil, err
	}
	const outstanding, conns = 3 * 65536, 2048
	call := command{before: []string{"CL.THROTTLE"}, after: words(withRoom), keys: workloadKeys, name: func(i int) string { return keyName(1_000_000 + i) }}
	res := &result{name: fmt.Sprintf("overload, %d calls outstanding: p99 of admissions at a fixed rate a second later / before", outstanding), unit: "ms", ratio: true, less: true, bound: 2, other: "before,"}
	for range min(e.rounds, 3) {
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return nil, err
		}
		before, err := e.work(ctx, leader)
		if err != nil {
			return nil, err
		}
		p := e.plan(load.Plan{Addrs: []string{leader.Addr}, Conns: conns, Pipeline: outstanding / conns, Next: call.next()})
		r, err := load.Run(ctx, p)
		if err != nil {
			return nil, err
		}
		if r.Codes["the"] > 0 || r.Codes["ERR"] > 0 {
			return nil, fmt.Errorf("overload: %v, the first %s", r.Codes, r.FirstError)
		}
		rss, err := rssAnon(leader.Proc)
		if err != nil {
			return nil, err
		}
		after, err := e.work(ctx, leader) // its first second is not measured
		if err != nil {
			return nil, err
		}
		res.add(float64(after.admitted.Quantile(0.99))/1e6, float64(before.admitted.Quantile(0.99))/1e6)
		res.note("overloaded: %.0f admitted a second, p99 %v; of %d calls refused %v; RssAnon of the leader %d MB",
			r.Rate(), r.Quantile(0.99), r.Errors+r.Allowed, r.Codes, rss/1e6)
	}
	return res, nil
}
