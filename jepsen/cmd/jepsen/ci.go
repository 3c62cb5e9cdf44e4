package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"limitd/jepsen/run"
)

// ciRuns are the runs that every change goes through: each kind of fault, mixed with
// its kin, in about half a minute.
var ciRuns = []struct {
	name, nemeses string
}{
	{"network", "isolate-leader,halves,bridge,mute,peers-only,sever,kill-leader,kill-majority,pause,stop,transfer,transfer-storm"},
	{"machines", "power-one,power-all,clock-jump,clock-drift,clock-strobe,replace,demote,remove-partitioned,kill-all"},
	{"disks", "disk-full,disk-stall,disk-slow,disk-error,hostile-bytes,slow-cpu,power-majority"},
}

// ciMutants are the defects that show within seconds.
const ciMutants = "local-clock-in-apply,tat-rounded-to-ms,ge-at-burst-edge,refund-twice"

// ciVerb makes the runs of every change, with fixed seeds, one that changes every day,
// and the quick part of the self-test.
func ciVerb(args []string) (int, error) {
	f := flag.NewFlagSet("ci", flag.ContinueOnError)
	each := f.Duration("each", 18*time.Second, "for how long faults begin in each run")
	if err := f.Parse(args); err != nil {
		return unknown, nil
	}
	dir, err := os.MkdirTemp("", "limitd-jepsen-ci-")
	if err != nil {
		return unknown, err
	}
	binary, err := run.Build(dir, "")
	if err != nil {
		return unknown, err
	}
	passed := 0
	today := uint64(time.Now().Unix() / 86400)
	for i, r := range ciRuns {
		seed := uint64(i + 1)
		if i == int(today%uint64(len(ciRuns))) {
			seed = today
		}
		at := filepath.Join(dir, r.name)
		code, err := child(at, "run", "-dir", at, "-binary", binary, "-profile", "ci-"+r.name,
			"-seed", fmt.Sprint(seed), "-nemesis", r.nemeses, "-time", each.String())
		if err != nil {
			return unknown, err
		}
		log, _ := os.ReadFile(filepath.Join(at, "run.log"))
		fmt.Printf("== %s, seed %d\n%s", r.name, seed, log)
		if code == valid {
			passed++
		}
	}
	fmt.Printf("runs: %d passed, %d failed\n", passed, len(ciRuns)-passed)
	if passed < len(ciRuns) {
		return invalid, fmt.Errorf("runs that are not valid lie in %s", dir)
	}
	code, err := selftestVerb([]string{"-mutant", ciMutants})
	return code, errors.Join(err, os.RemoveAll(dir))
}
