// Package run makes one run: it opens a lab, starts a cluster of real processes, lets
// clients ask and nemeses do their worst, heals, and leaves a directory for the
// checkers.
package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
	"limitd/jepsen/nemesis"
	"limitd/jepsen/workload"
)

// Options of a run.
type Options struct {
	Seed    uint64
	Profile string
	Nemeses string // names, separated by commas; all; none
	Time    time.Duration
	Dir     string
	Nodes   int
	Workers int
	Rate    float64           // operations per second
	Binary  string            // limitd to run, built by lab.BuildWithClock
	Env     map[string]string // for the nodes
	Replay  string            // the line that does it again
	Gates   map[string]int64
}

// heartbeat of the nodes: the shortest that is healthy where three nodes and their
// clients share two processors.
const heartbeat = 300 * time.Millisecond

const settings = `[raft]
heartbeat = "300ms"
election = "300ms"
lease = "300ms"
[limits]
min_free_disk = "1MiB"
`

type runner struct {
	o       Options
	lab     lab.Lab
	rec     *history.Recorder
	dial    workload.Dialer
	members *nemesis.Members
	env     *nemesis.Env
}

// Run makes a run. The process must be inside a lab's namespaces. An error means that
// there is no run to judge.
func Run(o Options) (err error) {
	nemeses, unknown := nemesis.Find(o.Nemeses)
	if unknown != "" {
		return fmt.Errorf("-nemesis: there is no nemesis %q", unknown)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	r := &runner{o: o}
	r.lab, err = lab.Open(lab.Options{Dir: o.Dir, Nodes: o.Nodes, Settings: settings, Clocks: true, Disks: true, Env: o.Env, Binary: o.Binary})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.lab.Close()) }()
	r.dial = func(node string, d time.Duration) (net.Conn, error) {
		return r.lab.Network().Dial(node, lab.RESPPort, d)
	}
	var ids []string
	for _, n := range r.lab.Nodes() {
		ids = append(ids, n.ID())
	}
	r.members = nemesis.NewMembers(ids...)
	meta := history.Run{
		Seed: o.Seed, Profile: o.Profile, Commit: commit(), Mode: "netns", Nodes: ids, HeartbeatNS: int64(heartbeat),
		Started: time.Now().UTC().Format(time.RFC3339), Settings: settings, Replay: o.Replay, Gates: o.Gates,
	}
	able := nemeses[:0:0]
	for _, n := range nemeses {
		meta.Nemeses = append(meta.Nemeses, n.Name)
		ok := true
		for _, a := range n.Needs {
			if err := r.lab.Able(a); err != nil {
				meta.Skipped = append(meta.Skipped, fmt.Sprintf("%s: %v", n.Name, err))
				ok = false
			}
		}
		if ok {
			able = append(able, n)
		}
	}
	for _, n := range r.lab.Nodes() {
		if err := n.Start(); err != nil {
			return err
		}
	}
	if r.rec, err = history.NewRecorder(o.Dir); err != nil {
		return err
	}
	if err := r.restore(); err != nil {
		return errors.Join(fmt.Errorf("the cluster does not come up: %w", err), r.rec.Close())
	}
	r.env = &nemesis.Env{Lab: r.lab, Ask: r.dial, Members: r.members, Recorder: r.rec}
	meta.Unsettled, err = r.act(able)
	meta.Members, meta.Duration = r.members.List(), r.rec.Now()
	err = errors.Join(err, r.stopAll(&meta), r.rec.Close())
	return errors.Join(err, history.WriteJSON(o.Dir, history.RunFile, meta))
}

// act is the run itself.
func (r *runner) act(nemeses []nemesis.Nemesis) (unsettled []string, err error) {
	ctx, end := context.WithTimeout(context.Background(), r.o.Time)
	defer end()
	watching, stop := context.WithCancel(context.Background())
	var all, watchers sync.WaitGroup
	w := workload.New(workload.Config{
		Seed: r.o.Seed, Nodes: r.members.List, Dial: r.dial, Recorder: r.rec, Workers: r.o.Workers, Rate: r.o.Rate})
	asking, silence := context.WithCancel(context.Background())
	all.Go(func() { w.Run(asking) })
	watchers.Go(func() { r.watchHealth(watching) })
	watchers.Go(func() { w.Watch(watching) })
	if len(nemeses) > 0 {
		unsettled, err = r.harass(ctx, nemeses)
	} else {
		<-ctx.Done()
	}
	silence()
	all.Wait()
	stop()
	watchers.Wait()
	err = errors.Join(err, r.lab.Heal())
	if unsettled == nil {
		if says := r.restore(); says != nil {
			unsettled = append(unsettled, says.Error())
		} else if says := drain(w); says != nil {
			unsettled = append(unsettled, says.Error())
		}
	}
	return unsettled, err
}

// drain is the proof that all members are well, and the same, at the end.
func drain(w *workload.Workload) error {
	ctx, end := context.WithTimeout(context.Background(), settled)
	defer end()
	return w.Drain(ctx)
}

// watchHealth writes what works whenever that changes.
func (r *runner) watchHealth(ctx context.Context) {
	var before map[string]history.NodeHealth
	for {
		now := r.lab.Health()
		for id, h := range now {
			h.Voter = r.members.Votes(id)
			now[id] = h
		}
		if !reflect.DeepEqual(before, now) {
			r.rec.Health(now)
			before = now
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stopAll ends the nodes in order. One that does not end well is noted.
func (r *runner) stopAll(meta *history.Run) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, n := range r.lab.Nodes() {
		if !n.Running() {
			continue
		}
		all.Go(func() {
			if code, err := n.Stop(30 * time.Second); err != nil || code != 0 {
				mu.Lock()
				defer mu.Unlock()
				meta.Unsettled = append(meta.Unsettled, fmt.Sprintf("%s ended with code %d after SIGTERM: %v", n.ID(), code, err))
			}
		})
	}
	all.Wait()
	return nil
}

func commit() string {
	b, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// Build builds limitd so that a lab can move its clocks; tags may be empty.
func Build(dir, tags string) (string, error) {
	out := filepath.Join(dir, "limitd")
	return out, lab.BuildWithClock(out, "limitd/cmd/limitd", tags, dir)
}
