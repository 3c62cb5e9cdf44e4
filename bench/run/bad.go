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
	h.admitted, err = drive(ctx, plan(healthyAdmissions, withRoom, workloadKeys, roomyKey), true)
	d := <-denied
	h.denied = d.r
	return h, errors.Join(err, d.err)
}

// beginning does something to the cluster; end takes it back.
type beginning func(ctx context.Context, leader, follower *nodes.Node) (end func() error, err error)

// badDay measures the work without and with what begin does.
func badDay(name string, begin beginning) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (*result, error) {
		e.filled = false
		if err := deniedAtLeader.prepare(ctx, e); err != nil {
			return nil, err
		}
		res := badResult(name)
		return res, e.besides(ctx, res, begin)
	}
}

func badResult(name string) *result {
	return &result{name: "bad day: " + name + "; p99 of admissions beside / without", unit: "ms", ratio: true, free: true, other: "without,"}
}

// besides adds to a result what the work measures before begin and before its end.
func (e *env) besides(ctx context.Context, res *result, begin beginning) error {
	for range min(e.rounds, 3) {
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return err
		}
		before, err := e.work(ctx, leader)
		if err != nil {
			return err
		}
		end, err := begin(ctx, leader, e.cluster.Other(leader))
		if err != nil {
			return err
		}
		beside, err := e.work(ctx, leader)
		if err = errors.Join(err, end()); err != nil {
			return err
		}
		res.add(float64(beside.admitted.Quantile(0.99))/1e6, float64(before.admitted.Quantile(0.99))/1e6)
		other := strings.TrimSuffix(res.other, ",")
		res.note("p99 of denials %v (%s %v); longest admission %v (%s %v)", beside.denied.Quantile(0.99), other, before.denied.Quantile(0.99),
			beside.admitted.Quantile(1), other, before.admitted.Quantile(1))
	}
	return nil
}

func pausedFollower(_ context.Context, _, follower *nodes.Node) (func() error, error) {
	return func() error { return follower.Proc.Signal(syscall.SIGCONT) }, follower.Proc.Signal(syscall.SIGSTOP)
}

// slowFollower makes each sync of a follower 20 ms longer.
func slowFollower(ctx context.Context, _, follower *nodes.Node) (func() error, error) {
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
func manyConnections(ctx context.Context, leader, _ *nodes.Node) (func() error, error) {
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
	newKeys := func(prefix string, p load.Plan) load.Plan {
		p.Addrs = []string{leader.Addr}
		p.Next = command{before: []string{"CL.THROTTLE"}, after: words(withRoom), keys: 1 << 40, name: func(n int) string { return fmt.Sprint(prefix, n) }}.next()
		return p
	}
	// The keys of the work are there before the memory is full, and for long.
	err = seedKeys(ctx, leader.Client, workloadKeys, roomyKey, func(key string) []any {
		return append([]any{"CL.THROTTLE", key}, anys(words(strings.TrimSuffix(withRoom, "1")+"500"))...)
	})
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		r, err := load.Run(ctx, newKeys("fill:", load.Plan{Conns: 50, Pipeline: 64, Time: time.Second}))
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
	res = badResult("a flood of new keys at max_memory")
	round := 0
	return res, full.besides(ctx, res, func(ctx context.Context, _, _ *nodes.Node) (func() error, error) {
		floodCtx, stop := context.WithCancel(ctx)
		flooded := make(chan *load.Result, 1)
		flood := newKeys(fmt.Sprintf("flood:%d:", round), load.Plan{Conns: 20, Pipeline: 16, Time: time.Hour})
		round++
		go func() {
			r, _ := load.Run(floodCtx, flood)
			flooded <- r
		}()
		return func() error {
			stop()
			f := <-flooded
			rss, err := rssAnon(leader.Proc)
			if err == nil {
				res.note("the flood: %d admitted, %d refused with -OOM; RssAnon of the leader %d MB", f.Allowed, f.Codes["OOM"], rss/1e6)
			}
			return err
		}, nil
	})
}

// overload has three times as many calls outstanding as a node queues: it must answer what
// it takes, refuse the rest with -BUSY, hold its memory, and be well a second later.
func overload(ctx context.Context, e *env) (*result, error) {
	e.filled = false
	if err := deniedAtLeader.prepare(ctx, e); err != nil {
		return nil, err
	}
	const outstanding, conns = 3 * 65536, 2048
	call := command{before: []string{"CL.THROTTLE"}, after: words(withRoom), keys: workloadKeys, name: roomyKey}
	res := &result{name: fmt.Sprintf("overload, %d calls outstanding: p99 of admissions at a fixed rate a second later / before", outstanding), unit: "ms", ratio: true, less: true, bound: 2, other: "before,"}
	return res, e.besides(ctx, res, func(ctx context.Context, leader, _ *nodes.Node) (func() error, error) {
		r, err := load.Run(ctx, e.plan(load.Plan{Addrs: []string{leader.Addr}, Conns: conns, Pipeline: outstanding / conns, Next: call.next()}))
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
		res.note("overloaded: %.0f admitted a second, p99 %v; of %d calls refused %v; RssAnon of the leader %d MB",
			r.Rate(), r.Quantile(0.99), r.Errors+r.Allowed, r.Codes, rss/1e6)
		return func() error { return nil }, nil // it is over; of the work that follows the first second is not measured
	})
}
