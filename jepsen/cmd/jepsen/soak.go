package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
	"limitd/jepsen/report"
	"limitd/jepsen/run"
)

// soakVerb makes run after run, seed after seed, over all nemeses and both sizes of a
// cluster, until the time is over. It goes on after the last seed of the ledger, and
// keeps the directories of runs that are not valid.
func soakVerb(args []string) (int, error) {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	dir := f.String("dir", "", "directory of the ledger and of the runs that failed")
	total := f.Duration("time", time.Hour, "for how long runs begin")
	each := f.Duration("each", time.Minute, "of one run")
	binary := f.String("binary", "", "limitd, built by jepsen; default: build it")
	older := run.Options{}
	f.StringVar(&older.From, "from", "", "commit that upgrade and downgrade take for the older one: see run -h")
	f.StringVar(&older.Previous, "previous", "", "limitd of that commit, built by jepsen; default: build it")
	summary := f.Bool("summary", false, "print what the ledger says, and make no run")
	if err := flags(f, args, 0); err != nil {
		return unknown, err
	}
	if *dir == "" {
		return unknown, errors.New("-dir names the directory of the ledger: it is missing")
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return unknown, err
	}
	ledger, err := history.ReadLedger(*dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return unknown, err
	}
	if *summary {
		fmt.Print(run.Summary(ledger))
		return valid, nil
	}
	fmt.Println(modeOf(lab.Enterable()))
	if *binary == "" {
		if *binary, err = run.Build(*dir, ""); err != nil {
			return unknown, err
		}
	}
	if err := older.FindOlder(*dir); err != nil {
		return unknown, err
	}
	if older.NoPrevious != "" {
		fmt.Println("skipped: all that needs an older binary:", older.NoPrevious)
	}
	seed := uint64(1)
	if len(ledger) > 0 {
		seed = ledger[len(ledger)-1].Seed + 1
	}
	worst := valid
	for end := time.Now().Add(*total); time.Now().Before(end); seed++ {
		nodes := 3
		if seed%3 == 0 {
			nodes = 5
		}
		at := filepath.Join(*dir, fmt.Sprintf("run-%d", seed))
		code, e, err := soakOne(at, *binary, older, seed, nodes, *each)
		if err != nil {
			return unknown, err
		}
		if code == valid {
			if err := os.RemoveAll(at); err != nil {
				return unknown, err
			}
		} else {
			e.Dir, worst = filepath.Base(at), max(worst, code)
		}
		if err := errors.Join(run.Append(*dir, e), report.WriteIndex(*dir)); err != nil {
			return unknown, err
		}
		fmt.Printf("seed %d, %d nodes: %s %v, %d operations, %d leader changes\n", seed, nodes, e.Verdict, e.Failed, e.Operations, e.LeaderChanges)
	}
	return worst, nil
}

// modeOf says how runs are made on a machine that has all for namespaces, or lacks something.
func modeOf(lacks error) string {
	if lacks != nil {
		return fmt.Sprintf("mode: TCP proxies on loopback, without what needs namespaces, because: %v", lacks)
	}
	return "mode: network namespaces, because this is root and all tools for them are installed"
}

// soakOne makes one run, as a process of its own, and reads what came of it.
func soakOne(dir, binary string, older run.Options, seed uint64, nodes int, each time.Duration) (int, history.SoakRun, error) {
	code, err := child(dir, "run", "-dir", dir, "-binary", binary, "-previous", older.Previous, "-from", older.From, "-profile", "soak",
		"-seed", fmt.Sprint(seed), "-nodes", fmt.Sprint(nodes), "-time", each.String())
	if err != nil {
		return unknown, history.SoakRun{}, err
	}
	e, err := run.Entry(dir)
	if err != nil { // the run did not come to an end: that is a failure, and is kept
		return unknown, history.SoakRun{Seed: seed, Nodes: nodes, Profile: "soak", Verdict: "unknown", Failed: []string{err.Error()}}, nil
	}
	return code, e, nil
}

// child runs this program again, with its output in dir/run.log.
func child(dir string, args ...string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return unknown, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return unknown, err
	}
	log, err := os.Create(filepath.Join(dir, "run.log"))
	if err != nil {
		return unknown, err
	}
	defer log.Close()
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); cmd.ProcessState == nil {
		return unknown, err
	}
	return cmd.ProcessState.ExitCode(), nil
}
