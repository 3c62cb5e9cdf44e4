// Package run makes one run: it opens a lab, starts a cluster of real processes, lets
// clients ask and nemeses do their worst, heals, has an operator make good what is left,
// proves that all is well again, and leaves a directory for the checkers (package
// history).
//
// All that is drawn comes from one seed, in a stream for each actor, so that a run with
// another nemesis has the same clients. The schedule of a seed is the same each time;
// what the nodes make of it is not.
package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
	"limitd/jepsen/nemesis"
	"limitd/jepsen/workload"
)

// heartbeat of the nodes: the shortest that is healthy where a cluster and its clients
// share two processors.
const heartbeat = 300 * time.Millisecond

const settings = `[raft]
heartbeat = "300ms"
election = "300ms"
lease = "300ms"
[limits]
min_free_disk = "1MiB"
id_ttl = "8s"
`

// idTTL is limits.id_ttl: so short that IDs are forgotten within a run, and longer than
// clients repeat.
const idTTL = 8 * time.Second

// snapshots of the nodes: so many that each run sees some, and a node that was away for
// seconds needs one.
var snapshots = []string{"--snapshot-every", "200"}

// drainTime is how long healed members may take to answer for every key, and to come to
// the same state.
const drainTime = 25 * time.Second

type runner struct {
	o   Options
	lab lab.Lab
	rec *history.Recorder
	env *nemesis.Env

	machine machine
}

// Run makes a run in o.Dir. The process must be inside a lab's namespaces, but for
// o.Proxy. An error means that there is no run to judge.
func Run(o Options) (err error) {
	if err := errors.Join(o.Validate(), os.MkdirAll(o.Dir, 0o755)); err != nil {
		return err
	}
	if err := history.WriteJSON(o.Dir, OptionsFile, o); err != nil {
		return err
	}
	r := &runner{o: o}
	r.lab, err = lab.Open(lab.Options{
		Dir: o.Dir, Seed: o.Seed, Nodes: o.Nodes, Spare: spares(o.Nodes), Settings: o.settings(), Env: o.Env, Binary: o.Binary,
		Older: o.Previous, NoOlder: o.NoPrevious,
		Slow: o.Slow, Proxy: o.Proxy, Clocks: true, Disks: !o.Proxy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.lab.Close()) }()
	meta := history.Run{
		Seed: o.Seed, Profile: o.Profile, Commit: commit(), Mode: "netns", HeartbeatNS: int64(heartbeat), IDTTLNS: int64(idTTL),
		Started: time.Now().UTC().Format(time.RFC3339), Settings: o.settings(), Replay: o.replay(), Gates: o.gates(),
		Previous: o.previous(),
	}
	if o.Proxy {
		meta.Mode = "proxy"
	}
	can, cannot, skipped, err := o.nemeses(r.lab.Able)
	if err != nil {
		return err
	}
	meta.Skipped = skipped
	for _, n := range append(can, cannot...) {
		meta.Nemeses = append(meta.Nemeses, n.Name)
	}
	if err := r.lab.Able(lab.WallTime); err != nil {
		skipped = append(skipped, fmt.Sprintf("the turn of a calendar: %v", err))
		meta.Skipped = skipped
	}
	for _, s := range skipped {
		fmt.Println("skipped:", s)
	}
	if len(can) == 0 && len(cannot) > 0 {
		return fmt.Errorf("this machine can make none of the faults %s", o.Nemeses)
	}
	for _, n := range r.lab.Nodes() {
		meta.Nodes = append(meta.Nodes, n.ID())
	}
	unwatch, err := r.machine.watch(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unwatch()) }()
	if r.rec, err = history.NewRecorder(o.Dir); err != nil {
		return err
	}
	if err := r.setDate(); err != nil {
		return errors.Join(err, r.rec.Close())
	}
	upgrade, older := nemesis.Upgrade(rand.New(rand.NewPCG(o.Seed, olderStream)), can, o.Nemeses != "all")
	if err := r.found(meta.Nodes[:o.Nodes], older); err != nil {
		return errors.Join(err, r.rec.Close())
	}
	var first *nemesis.Nemesis
	if older {
		first = &upgrade
	}
	meta.Unsettled, err = r.act(first, can)
	meta.Members, meta.Duration = r.env.Roster.List(), r.rec.Now()
	meta.Unsettled = append(meta.Unsettled, r.stopAll()...)
	return errors.Join(err, r.rec.Close(), history.WriteJSON(o.Dir, history.RunFile, meta))
}

// foundTime is about as long as a cluster takes from its start until clients ask it.
const foundTime = 5 * time.Second

// setDate sets the wall clocks to shortly before the calendar turns over, if they can be
// set. The first leader takes cluster time from there, so that it does while clients ask.
func (r *runner) setDate() error {
	if r.lab.Able(lab.WallTime) != nil {
		return nil
	}
	draw := rand.New(rand.NewPCG(r.o.Seed, dateStream))
	lead := foundTime + time.Duration(draw.Int64N(int64(r.o.Time)/2+1))
	ahead := time.Until(workload.TurnOver.Add(-lead))
	for _, n := range r.lab.Nodes() {
		if err := n.JumpWall(ahead); err != nil {
			return err
		}
	}
	return nil
}

// spares are the nodes that may join: a cluster never has more than five or six.
func spares(nodes int) int {
	switch nodes {
	case 1:
		return 0
	case 3:
		return 2
	}
	return 1
}

// found starts the first members, and waits until they serve. older: with that binary.
func (r *runner) found(ids []string, older bool) error {
	dial := func(node string, d time.Duration) (net.Conn, error) {
		return r.lab.Network().Dial(node, lab.RESPPort, d)
	}
	r.env = &nemesis.Env{
		Lab: r.lab, Ask: dial, Roster: nemesis.NewRoster(ids...), Recorder: r.rec, Serve: snapshots, Wanted: len(ids),
		Rand: rand.New(rand.NewPCG(r.o.Seed, operatorStream)), Late: r.machine.behind}
	if err := r.env.Found(older); err != nil {
		return err
	}
	if err := r.env.Operate(); err != nil {
		return fmt.Errorf("the cluster does not come up: %w", err)
	}
	return nil
}

// act is the run itself: what did not come back, and all else that the nodes did and must
// not do, is in unsettled. first, if there is one, is of the first period.
func (r *runner) act(first *nemesis.Nemesis, nemeses []nemesis.Nemesis) (unsettled []string, err error) {
	c := workload.Config{
		Seed: r.o.Seed, Nodes: r.env.Roster.List, Dial: r.env.Ask, Recorder: r.rec, Workers: r.o.Workers, Rate: r.o.Rate}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := workload.New(c)
	watching, stop := context.WithCancel(context.Background())
	asking, silence := context.WithCancel(context.Background())
	var clients, watchers sync.WaitGroup
	clients.Go(func() { w.Run(asking) })
	watchers.Go(func() { r.watchHealth(watching) })
	watchers.Go(func() { w.Watch(watching) })

	ctx, end := context.WithTimeout(context.Background(), r.o.Time)
	says, err := r.harass(ctx, first, nemeses)
	end()
	silence()
	clients.Wait()

	err = errors.Join(err, r.lab.Heal())
	if err == nil && says == nil {
		says = r.env.Operate()
	}
	if err == nil && says == nil {
		draining, end := r.machine.patience(drainTime)
		says = w.Drain(draining)
		end()
	}
	stop()
	watchers.Wait()
	unsettled = append(r.env.Complaints(), r.olderStill()...)
	if says != nil {
		unsettled = append(unsettled, says.Error())
	}
	return unsettled, err
}

// olderStill names the members that were not upgraded in the end.
func (r *runner) olderStill() (unwell []string) {
	for _, id := range r.env.Roster.List() {
		if r.lab.Node(id).Older() {
			unwell = append(unwell, id+" is on the older binary, when all upgrades are over")
		}
	}
	return unwell
}

// stopAll ends the nodes in order, and says which did not end well.
func (r *runner) stopAll() (unwell []string) {
	var all sync.WaitGroup
	says := make(chan string, len(r.lab.Nodes()))
	for _, n := range r.lab.Nodes() {
		if n.Running() {
			all.Go(func() {
				if code, err := n.Stop(30 * time.Second); err != nil || code != 0 {
					says <- fmt.Sprintf("%s ended with code %d after SIGTERM, when all was well: %v", n.ID(), code, err)
				}
			})
		}
	}
	all.Wait()
	close(says)
	for s := range says {
		unwell = append(unwell, s)
	}
	return unwell
}

// commit is that of the working directory, with a mark if files differ from it.
func commit() string {
	b, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// Build builds limitd so that a lab can move its clocks; tags may be empty.
func Build(dir, tags string) (string, error) {
	out := filepath.Join(dir, "limitd")
	return out, lab.BuildWithClock(out, "", program, tags, dir)
}
