package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"limitd/bench/load"
	"limitd/proc/nodes"
)

// profileSeconds is for how long each profile is taken, under a load that lasts longer.
const profileSeconds = 5

// profiled are the workloads that profiles are taken of, at the leader and a follower.
var profiled = []struct {
	name     string
	conns    int
	pipeline int
	keys     int
	after    string
	follower bool // the load asks it
}{
	{name: "admitted", conns: 200, pipeline: 64, keys: 100_000, after: withRoom},
	{name: "hot-key", conns: 200, pipeline: 64, keys: 1, after: withRoom},
	{name: "denied", conns: 200, pipeline: 64, keys: 1000, after: usedUp},
	{name: "denied-follower", conns: 200, pipeline: 64, keys: 1000, after: usedUp, follower: true},
	{name: "single", conns: 500, pipeline: 1, keys: 100_000, after: withRoom},
}

// profile writes a profile of each kind for each workload and node, and prints the top of each.
func (e *env) profile(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, w := range profiled {
		if err := deniedAtLeader.prepare(ctx, e); err != nil {
			return err
		}
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return err
		}
		asked, other := leader, e.cluster.Other(leader)
		if w.follower {
			asked, other = other, asked
		}
		call := command{before: []string{"CL.THROTTLE"}, after: words(w.after), keys: w.keys}
		if w.after == withRoom {
			call.name = roomyKey
		}
		done := make(chan error, 1)
		loadCtx, stop := context.WithCancel(ctx)
		go func() {
			next := call.next()
			_, err := load.Run(loadCtx, load.Plan{Addrs: []string{asked.Addr}, Conns: w.conns, Pipeline: w.pipeline, Time: time.Hour,
				Next: func(b []byte, rnd *rand.Rand) []byte { return next(b, rnd) }})
			done <- err
		}()
		err = e.profileNodes(ctx, dir, w.name, map[string]*nodes.Node{"asked": asked, "other": other})
		stop()
		if loadErr := <-done; !errors.Is(loadErr, context.Canceled) {
			err = errors.Join(err, loadErr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *env) profileNodes(ctx context.Context, dir, name string, of map[string]*nodes.Node) error {
	kinds := []string{"profile", "allocs", "mutex", "block"}
	type outcome struct {
		text string
		err  error
	}
	outcomes := make(chan outcome)
	for role, n := range of {
		for _, kind := range kinds {
			go func() {
				text, err := takeProfile(ctx, n, e.cluster.Program, kind, filepath.Join(dir, fmt.Sprintf("%s.%s.%s.pprof", name, role, kind)))
				outcomes <- outcome{fmt.Sprintf("\n== %s, the node that is %s: %s\n%s", name, role, kind, text), err}
			}()
		}
	}
	var errs []error
	for range len(of) * len(kinds) {
		o := <-outcomes
		fmt.Print(o.text)
		errs = append(errs, o.err)
	}
	return errors.Join(errs...)
}

func profileSocket(n *nodes.Node) string { return n.Data + ".profiles" }

// takeProfile writes a profile of profileSeconds to the file, and returns its top lines.
func takeProfile(ctx context.Context, n *nodes.Node, program, kind, file string) (string, error) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", profileSocket(n))
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/%s?seconds=%d", n.ID, kind, profileSeconds), nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: profile %s: %s %.200s %w", n.ID, kind, resp.Status, body, err)
	}
	if err := os.WriteFile(file, body, 0o644); err != nil {
		return "", err
	}
	args := []string{"tool", "pprof", "-top", "-nodecount", "25"}
	if kind == "allocs" {
		args = append(args, "-sample_index=alloc_objects")
	}
	out, err := exec.CommandContext(ctx, "go", append(args, program, file)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go tool pprof %s: %w: %s", file, err, out)
	}
	lines := strings.SplitN(string(out), "flat  flat%", 2)
	return "flat  flat%" + lines[len(lines)-1], nil
}
