// Command run measures limitd as it ships, three nodes on this machine with
// every node's writes synced, against the figures that it must keep. It is
// `make bench-smoke`, and with all rows `make bench`; it runs in the root of the module.
//
// It builds limitd, starts the nodes and what they are compared with in a
// directory of its own, and loads both in turns; the figures that count are
// ratios of one run, so that a slow machine is slow for both. It exits 1 if a
// figure is missed, 2 if it could not be measured. All that it started is
// stopped, by pid, and its directory removed.
//
// bench/README.md says what each row measures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"limitd/proc/nodes"
	"limitd/proc/timeslice"
)

// row is one measurement by the name that -rows knows it by.
type row struct {
	name    string
	smoke   bool // one of those that are measured if none are named
	measure func(context.Context, *env) (*result, error)
}

var rows = []row{
	{"admitted", true, admittedAtLeader.measure},
	{"denied", true, deniedAtLeader.measure},
	{"denied-follower", true, deniedAtFollower.measure},
	{"wal", false, walAdmitted},
	{"hot-key", false, hotKey},
	{"flood-all-ports", false, floodAllPorts},
	{"flood-cpu", false, floodCPU},
	{"unpipelined", false, unpipelined},
	{"etcd", false, etcdPuts.measure},
	{"gubernator-admitted", false, comparison{name: "500 connections, one call at a time, all admitted / gubernator, one node", start: startGubernator(1)}.measure},
	{"gubernator-denied", false, comparison{name: "500 connections, one call at a time, all denied / gubernator, one node", denied: true, start: startGubernator(1)}.measure},
	{"gubernator-3-admitted", false, comparison{name: "500 connections, one call at a time, all admitted / gubernator, three nodes", start: startGubernator(3)}.measure},
	{"gubernator-3-denied", false, comparison{name: "500 connections, one call at a time, all denied / gubernator, three nodes", denied: true, start: startGubernator(3)}.measure},
	{"gubernator-accuracy", false, accuracyOfPeer("gubernator, one node", startGubernator(1))},
	{"ratelimit-admitted", false, comparison{name: "500 connections, one call at a time, all admitted / envoyproxy/ratelimit", start: startRatelimit(false)}.measure},
	{"ratelimit-denied", false, comparison{name: "500 connections, one call at a time, all denied / envoyproxy/ratelimit", denied: true, start: startRatelimit(true)}.measure},
	{"ratelimit-accuracy", false, accuracyOfPeer("envoyproxy/ratelimit", startRatelimit(false))},
	{"redis-cell-admitted", false, againstCell(admittedAtLeader)},
	{"redis-cell-denied", false, againstCell(deniedAtLeader)},
	{"redis-cell-denied-follower", false, againstCell(deniedAtFollower)},
	{"denial-p99", false, denialP99},
	{"admission-p99", false, admissionP99},
	{"failover", true, failover},
	{"restart", true, restart},
	{"join", true, join},
	{"join-denials", true, joinDenials},
	{"accuracy", false, accuracy(false)},
	{"accuracy-killed", false, accuracy(true)},
	{"accuracy-redis-restarts", false, accuracyOfRedis("its Redis without persistence killed (kill -9) half-way and started again", false)},
	{"accuracy-redis-replica", false, accuracyOfRedis("its Redis killed (kill -9) half-way and a replica promoted that has noticed", true)},
	{"sweep-denied", false, sweep(deniedAtLeader)},
	{"sweep-admitted", false, sweep(admittedAtLeader)},
	{"bad-paused-follower", false, badDay("a follower is paused (SIGSTOP)", pausedFollower)},
	{"bad-slow-follower", false, badDay("each sync of a follower takes 20 ms longer", slowFollower)},
	{"bad-connections", false, badDay("10,000 idle connections", manyConnections)},
	{"bad-memory", false, fullMemory},
	{"overload", false, overload},
	{"allocations-denied", false, allocationsOf("objects that the leader allocates for a denial", 0.001, deniedAtLeader)},
	{"allocations-admitted", false, allocationsOf("objects that the leader allocates for an admission", 0.1, admittedAtLeader)},
	{"memory-table", false, memoryTable},
	{"memory-process", false, memoryProcess},
	{"pauses-denied", false, pausesOfDenials},
	{"pauses-admitted", false, pausesOfAdmissions},
	{"restart-big", false, restartBig},
}

func init() {
	for _, w := range workloads {
		rows = append(rows, row{"workload:" + strings.ReplaceAll(strings.ReplaceAll(w.name, ",", ""), " ", "-"), false, w.measure})
	}
}

// env is what the rows run on.
type env struct {
	cluster             *nodes.Cluster
	baseline            *baseline
	rounds, kills, keys int
	scale               float64
	joins               []joined // once they were measured
	dir                 string
	loadBefore          string
	bigKeys             int             // live keys of the rows about many keys
	filled              bool            // they are there
	tools               map[string]bool // programs of bench/peers that were built
	cellModule          string          // file of redis-cell
}

// scaled shortens a load, but not below what redis-benchmark can time.
func (e *env) scaled(requests int) int { return max(50_000, int(float64(requests)*e.scale)) }

// runPatience bounds the whole run, whatever the flags ask for.
const runPatience = 90 * time.Minute

var (
	errMissed     = errors.New("a figure was missed")
	errUnmeasured = errors.New("not measured")
)

func main() {
	// The kernel ends the children with the thread that started them: stay on it.
	runtime.LockOSThread()
	// How late the load is itself is in its figures. The children, started from this thread, keep what the system gives them.
	if err := timeslice.ShortenOthers(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-smoke: the system's scheduler keeps its time slices, so commands may leave late:", err)
	}
	logging.Disable() // go-redis reports each dial to a node that is down, and here nodes are killed
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	err := run(ctx)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-smoke:", err)
		if errors.Is(err, errMissed) {
			os.Exit(1)
		}
		os.Exit(2)
	}
}

func run(ctx context.Context) (err error) {
	var e env
	names := flag.String("rows", "smoke", "comma-separated `ROWS` to measure, or smoke or all: "+rowNames())
	program := flag.String("limitd", "", "measure this `PROGRAM` instead of building ./cmd/limitd")
	profiles := flag.String("profiles", "", "measure nothing, and write profiles of the nodes under each workload into this `DIRECTORY`")
	file := flag.String("results", "", "write the figures to this `FILE`, and plots beside it")
	cell := flag.String("redis-cell-module", "", "`FILE` of the module redis-cell (libredis_cell.so), for the rows redis-cell-*")
	keep := flag.Bool("keep", false, "keep the directory with configuration, data and logs, and print its path")
	flag.IntVar(&e.rounds, "rounds", 5, "rounds of each load")
	flag.IntVar(&e.kills, "kills", 10, "kills of the leader")
	flag.IntVar(&e.keys, "keys", 1_000_000, "live keys of the restart and of the joins")
	flag.IntVar(&e.bigKeys, "big", 10_000_000, "live keys of the rows memory, pauses and restart-big")
	flag.Float64Var(&e.scale, "scale", 1, "length of the loads: 0.1 is a tenth of the requests")
	flag.Parse()
	if e.rounds < 1 || e.kills < 1 || e.keys < 1 {
		return errors.New("-rounds, -kills and -keys must be 1 or more")
	}
	if e.cellModule, err = cellFile(*cell); err != nil {
		return err
	}
	chosen, err := choose(*names, e.cellModule != "")
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "limitd-bench-")
	if err != nil {
		return err
	}
	defer func() {
		if *keep {
			fmt.Println("kept:", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	e.dir = dir
	if *program == "" {
		*program = filepath.Join(dir, "limitd")
		build := exec.CommandContext(ctx, "go", "build", "-o", *program, "./cmd/limitd")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build ./cmd/limitd (run this in the root of the module): %w", err)
		}
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	if e.baseline, err = startBaseline(ctx, dir); err != nil {
		return err
	}
	cluster := nodes.Config{Dir: dir, Program: *program}
	if *profiles != "" {
		cluster.Args = func(n *nodes.Node) []string { return []string{"--profiles", profileSocket(n)} }
	}
	if e.cluster, err = nodes.New(cluster); err != nil {
		return err
	}
	if _, err := e.cluster.Start(ctx); err != nil {
		return err
	}
	if *profiles != "" {
		return e.profile(ctx, *profiles)
	}
	return e.measure(ctx, chosen, *file)
}

// measure prints each row as soon as it is there, so that a failure loses no figure.
func (e *env) measure(ctx context.Context, chosen []row, file string) error {
	fmt.Printf("limitd: 3 nodes, default configuration; baseline: bench/gcra.lua on redis-server without persistence\n")
	e.loadBefore = loadAverage()
	fmt.Printf("%d CPUs, load before the start %s\n", runtime.NumCPU(), e.loadBefore)
	var missed, unmeasured []string
	var results []*result
	for _, r := range chosen {
		res, err := r.measure(ctx, e)
		if err != nil && ctx.Err() == nil {
			// One row that cannot be measured keeps no other one from it.
			res = &result{name: r.name, missing: err.Error()}
			_, err = e.cluster.Start(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		res.print(os.Stdout)
		results = append(results, res)
		if file != "" { // after each row: a run that fails later has not been for nothing
			if err := e.writeResults(file, results); err != nil {
				return err
			}
		}
		switch {
		case res.missing != "":
			unmeasured = append(unmeasured, r.name)
		case !res.ok():
			missed = append(missed, r.name)
		}
	}
	return verdict(missed, unmeasured)
}

// verdict is what a run ends with: a row that was not measured has not passed.
func verdict(missed, unmeasured []string) (err error) {
	if missed != nil {
		err = fmt.Errorf("%w: %s", errMissed, strings.Join(missed, ", "))
	}
	if unmeasured != nil {
		err = errors.Join(err, fmt.Errorf("%w: %s", errUnmeasured, strings.Join(unmeasured, ", ")))
	}
	return err
}

// loadAverage is that of the last minute: what else keeps this machine busy.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	last, _, _ := strings.Cut(string(text), " ")
	return last
}

// stop ends whatever runs, even if the context of the run is over.
func (e *env) stop() (err error) {
	if e.cluster != nil {
		err = e.cluster.Stop()
	}
	if e.baseline != nil {
		err = errors.Join(err, e.baseline.proc.Stop())
	}
	return err
}

func rowNames() string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	return strings.Join(names, ",")
}

// choose finds the rows of that names. All rows are those that can be measured: without
// the module of redis-cell its rows are not.
func choose(names string, cell bool) ([]row, error) {
	var chosen []row
	for name := range strings.SplitSeq(names, ",") {
		if name == "smoke" || name == "all" {
			for _, r := range rows {
				if r.smoke || name == "all" && (cell || !strings.HasPrefix(r.name, "redis-cell-")) {
					chosen = append(chosen, r)
				}
			}
			continue
		}
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-rows: no row %q, there are %s", name, rowNames())
		}
		chosen = append(chosen, rows[i])
	}
	return chosen, nil
}
