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

// ciMutants are the defects that show within seconds.
const ciMutants = "local-clock-in-apply,tat-rounded-to-ms,ge-at-burst-edge,refund-twice"

// ciVerb makes the runs of every change, with fixed seeds and one that is new every day,
// and the quick part of the self-test.
func ciVerb(args []string) (int, error) {
	f := flag.NewFlagSet("ci", flag.ContinueOnError)
	mutants := f.String("mutant", ciMutants, "defects to find: see selftest")
	if err := flags(f, args, 0); err != nil {
		return unknown, err
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
	for i, profile := range run.CI {
		seed := uint64(i + 1)
		if i == int(today%uint64(len(run.CI))) {
			seed = today
		}
		at := filepath.Join(dir, profile)
		code, err := child(at, "run", "-dir", at, "-binary", binary, "-profile", profile, "-seed", fmt.Sprint(seed))
		if err != nil {
			return unknown, err
		}
		log, _ := os.ReadFile(filepath.Join(at, "run.log"))
		fmt.Printf("== %s, seed %d\n%s", profile, seed, log)
		if code == valid {
			passed++
		}
	}
	fmt.Printf("runs: %d passed, %d failed\n", passed, len(run.CI)-passed)
	if passed < len(run.CI) {
		return invalid, fmt.Errorf("runs that are not valid lie in %s", dir)
	}
	code, err := selftestVerb([]string{"-mutant", *mutants})
	return code, errors.Join(err, os.RemoveAll(dir))
}
