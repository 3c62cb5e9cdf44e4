package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"limitd/bench/load"
)

// The rows that compare limitd with other servers, one call at a time on 500
// connections. Those are asked by gRPC with the program bench/peers/load.
const (
	peerClients = 500
	tuneTime    = 1500 * time.Millisecond
	toolTime    = 20 * time.Minute // to build one, modules fetched and compiled for the first time
)

// missing says that a row cannot be measured, as something is not on this machine.
type missing string

func (m missing) Error() string { return string(m) }

// peer is what runs beside limitd while its row is measured.
type peer struct {
	kind    string // as bench/peers/load calls it
	about   string // version and configuration, for the report
	addrs   []string
	clients []asking // among which the best is looked for
	procs   []*process
}

// asking is a way to ask a peer: so many clients on so many connections.
type asking struct{ clients, conns int }

func (p *peer) stop() error {
	var errs []error
	for _, proc := range p.procs {
		errs = append(errs, proc.stop())
	}
	return errors.Join(errs...)
}

// starter starts a peer; a missing error says what it lacks.
type starter func(ctx context.Context, e *env) (*peer, error)

// startPeer starts a peer and builds what asks it.
func (e *env) startPeer(ctx context.Context, start starter) (*peer, error) {
	if _, err := e.loader(ctx); err != nil {
		return nil, err
	}
	return start(ctx, e)
}

// tool builds a program of a module below bench, once in a run.
func (e *env) tool(ctx context.Context, name, module, pkg string) (string, error) {
	program := filepath.Join(e.dir, "peer-"+name)
	if e.tools[name] {
		return program, nil
	}
	fmt.Printf("\nbuilding %s in bench/%s (minutes, the first time)\n", pkg, module)
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "-C", filepath.Join("bench", module), "build", "-o", program, pkg).CombinedOutput()
	if ctx.Err() != nil {
		return "", fmt.Errorf("build %s: %w", pkg, ctx.Err())
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", missing(fmt.Sprintf("%s could not be built: %s (%v); `go -C bench/%s mod download` fetches what it needs", pkg, lines[len(lines)-1], err, module))
	}
	if e.tools == nil {
		e.tools = map[string]bool{}
	}
	e.tools[name] = true
	return program, nil
}

// loader is the program that asks peers.
func (e *env) loader(ctx context.Context) (string, error) {
	return e.tool(ctx, "load", "peers", "./load")
}

// peerLoad is one run of bench/peers/load.
type peerLoad struct {
	asking
	limit  string // its name
	most   int64  // calls of a key that are admitted
	period time.Duration
	keys   int
	prefix string
	calls  int           // in all; 0: for a time
	time   time.Duration // 0: that of the other loads
}

// counted is what it prints.
type counted struct {
	Rate                    float64
	Allowed, Denied, Errors int64
	FirstError              string        `json:"first_error"`
	P50                     time.Duration `json:"p50_ns"`
	P99                     time.Duration `json:"p99_ns"`
}

// drivePeer is a load on a peer that must be answered without an error.
func (e *env) drivePeer(ctx context.Context, p *peer, l peerLoad) (*counted, error) {
	ctx, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	program, err := e.loader(ctx)
	if err != nil {
		return nil, err
	}
	span := e.plan(load.Plan{})
	if l.time == 0 {
		l.time = span.Time
	}
	if l.prefix == "" {
		l.prefix = "key"
	}
	cmd := exec.CommandContext(ctx, program, "-peer", p.kind, "-addrs", strings.Join(p.addrs, ","),
		"-clients", strconv.Itoa(l.clients), "-conns", strconv.Itoa(l.conns), "-keys", strconv.Itoa(l.keys), "-prefix", l.prefix,
		"-name", l.limit, "-limit", strconv.FormatInt(l.most, 10), "-period", l.period.String(),
		"-calls", strconv.Itoa(l.calls), "-warmup", span.Warmup.String(), "-time", l.time.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("load on %s: %w: %s", p.kind, err, strings.TrimSpace(stderr.String()))
	}
	c := &counted{}
	if err := json.Unmarshal(out, c); err != nil {
		return nil, fmt.Errorf("load on %s printed %q: %w", p.kind, out, err)
	}
	if c.Errors > 0 {
		return nil, fmt.Errorf("%d of %d calls of %s failed: %s", c.Errors, c.Errors+c.Allowed+c.Denied, p.kind, c.FirstError)
	}
	return c, nil
}

// comparison is a row: single calls of limitd, all admitted or all denied, over those of a peer.
type comparison struct {
	name           string
	bound, stretch float64 // 0: none
	denied         bool
	start          starter
}

// load is what the peer is asked: as many keys as limitd, and limits that decide alike.
func (c comparison) load() peerLoad {
	if c.denied {
		return peerLoad{limit: "denied", most: 1, period: 24 * time.Hour, keys: deniedAtLeader.keys}
	}
	return peerLoad{limit: "admitted", most: 1_000_000, period: time.Hour, keys: admittedAtLeader.keys}
}

func (c comparison) measure(ctx context.Context, e *env) (res *result, err error) {
	e.filled = false
	res = &result{name: c.name, unit: "calls/s", bound: c.bound, stretch: c.stretch, free: c.bound == 0, ratio: true}
	p, err := e.startPeer(ctx, c.start)
	if err != nil {
		return res.lacks(err)
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	res.other = p.kind
	ours := admittedAtLeader
	if c.denied {
		ours = deniedAtLeader
	}
	if err := ours.prepare(ctx, e); err != nil {
		return nil, err
	}
	theirs, err := c.prepare(ctx, e, p)
	if err != nil {
		return nil, err
	}
	res.note("%s; asked by %d clients on %d connections, the best of %d ways", p.about, theirs.clients, theirs.conns, len(p.clients))
	next := command{before: []string{"CL.THROTTLE"}, after: words(ours.args), keys: ours.keys}.next()
	for range e.rounds {
		mine, err := e.single(ctx, next, !c.denied)
		if err != nil {
			return nil, err
		}
		base, err := e.drivePeer(ctx, p, theirs)
		if err != nil {
			return nil, err
		}
		if err := c.check(base); err != nil {
			return nil, err
		}
		res.add(mine.Rate(), base.Rate)
		res.note("p50 and p99: limitd %v and %v, %s %v and %v", mine.Quantile(0.5), mine.Quantile(0.99), p.kind, base.P50, base.P99)
	}
	return res, nil
}

// prepare uses up the keys that are to be denied, and finds how the peer is asked best.
func (c comparison) prepare(ctx context.Context, e *env, p *peer) (peerLoad, error) {
	l := c.load()
	if c.denied {
		l.asking, l.calls = asking{16, 16}, l.keys
		if n, err := e.drivePeer(ctx, p, l); err != nil {
			return l, err
		} else if n.Allowed != int64(l.keys) {
			return l, fmt.Errorf("%s admitted %d of %d first calls", p.kind, n.Allowed, l.keys)
		}
	}
	l.calls, l.time = 0, tuneTime
	best, highest := asking{}, -1.0
	for _, way := range p.clients {
		l.asking = way
		n, err := e.drivePeer(ctx, p, l)
		if err != nil {
			return l, err
		}
		if n.Rate > highest {
			best, highest = way, n.Rate
		}
	}
	l.asking, l.time = best, 0
	return l, nil
}

// check makes sure that a peer decided what the name of the row says.
func (c comparison) check(n *counted) error {
	if n.Allowed+n.Denied == 0 || c.denied && n.Allowed > 0 || !c.denied && n.Denied > 0 {
		return fmt.Errorf("%s: %d calls were allowed and %d denied", c.name, n.Allowed, n.Denied)
	}
	return nil
}

// single is limitd's side: 500 connections to the leader, one call at a time on each.
func (e *env) single(ctx context.Context, next func([]byte, *rand.Rand) []byte, allowed bool) (*load.Result, error) {
	if err := e.cluster.awaitReady(ctx); err != nil {
		return nil, err
	}
	leader, err := e.cluster.leader(ctx)
	if err != nil {
		return nil, err
	}
	return drive(ctx, e.plan(load.Plan{Addrs: []string{leader.addr}, Conns: peerClients, Next: next}), allowed)
}

// accuracyOfPeer is admitted / limit of a peer to which nothing happens.
func accuracyOfPeer(name string, start starter) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (res *result, err error) {
		res = &result{name: "admitted / limit of " + name, free: true, worst: true, digits: 4}
		p, err := e.startPeer(ctx, start)
		if err != nil {
			return res.lacks(err)
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		res.note("%s", p.about)
		for i := range min(e.rounds, 3) {
			n, err := e.drivePeer(ctx, p, peerLoad{
				asking: asking{accuracyClients, accuracyClients}, limit: "accuracy", most: accuracyLimit, period: 24 * time.Hour,
				keys: accuracyKeys, prefix: fmt.Sprintf("accuracy:%d", i), calls: accuracyKeys * accuracyLimit * 3 / 2,
			})
			if err != nil {
				return nil, err
			}
			res.add(float64(n.Allowed) / (accuracyKeys * accuracyLimit))
		}
		return res, nil
	}
}

// installed finds a program, or says how to install it.
func installed(program, install string) error {
	if _, err := exec.LookPath(program); err != nil {
		return missing(fmt.Sprintf("%s is not there: %s", program, install))
	}
	return nil
}
