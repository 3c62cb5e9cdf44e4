package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"limitd/bench/load"
	"limitd/proc"
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
	procs   []*proc.Process
}

// asking is a way to ask a peer: so many clients on so many connections.
type asking struct{ clients, conns int }

// grpcClients are the ways in which a limiter that speaks gRPC is asked, of which the best counts.
var grpcClients = []asking{{peerClients, peerClients}, {peerClients, 50}, {peerClients, 5}, {100, 10}}

func (p *peer) stop() error { return proc.StopAll(p.procs...) }

// starter starts a peer; a missing error says what it lacks.
type starter func(ctx context.Context, e *env) (*peer, error)

// startPeer starts a peer and builds what asks it.
func (e *env) startPeer(ctx context.Context, start starter) (*peer, error) {
	p, err := start(ctx, e) // first: it may be found that nothing needs to be built
	if err != nil {
		return nil, err
	}
	if _, err := e.loader(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
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
	var out []byte
	ended := make(chan error)
	go func() { // not on main's thread: it has the time slices of the load on limitd
		var err error
		out, err = cmd.Output()
		ended <- err
	}()
	if err := <-ended; err != nil {
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

// installed finds a program, or says how to install it.
func installed(program, install string) error {
	if _, err := exec.LookPath(program); err != nil {
		return missing(fmt.Sprintf("%s is not there: %s", program, install))
	}
	return nil
}

// versionOf is the version of the module that a program was built from.
func versionOf(program string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "of an unknown version"
	}
	return info.Main.Version
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
