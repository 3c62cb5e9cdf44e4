package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"limitd/jepsen/run"
)

// ciMutants are two of the defects that show within seconds: one of a decision, one of
// several limits. There is no time for more.
const ciMutants = "tat-rounded-to-ms,takeall-partial"

// ciVerb makes the runs of every change, with fixed seeds and one that is new every day,
// and the quick part of the self-test.
func ciVerb(args []string) (int, error) {
	f := flag.NewFlagSet("ci", flag.ContinueOnError)
	mutants := f.String("mutant", ciMutants, "defects to find: see selftest")
	store := f.String("log-store", "", "of the nodes: bolt or wal; default: the nodes' default")
	if err := flags(f, args, 0); err != nil {
		return unknown, err
	}
	dir, err := scratch("limitd-jepsen-ci-")
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
		code, late, err := ciRun(filepath.Join(dir, profile), binary, profile, *store, seed)
		if err == nil && code != valid && late {
			fmt.Println("nothing was wrong but that it was late, as on a machine that others use too: once more")
			code, _, err = ciRun(filepath.Join(dir, profile+"-again"), binary, profile, *store, seed)
		}
		if err != nil {
			return unknown, err
		}
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

// ciRun makes one run and prints what came of it. late says that the only check that is
// not valid is the one of availability.
func ciRun(dir, binary, profile, store string, seed uint64) (code int, late bool, err error) {
	code, err = child(dir, "run", "-dir", dir, "-binary", binary, "-profile", profile, "-log-store", store, "-seed", fmt.Sprint(seed))
	if err != nil {
		return unknown, false, err
	}
	log, _ := os.ReadFile(filepath.Join(dir, "run.log"))
	fmt.Printf("== %s, seed %d\n%s", profile, seed, log)
	e, err := run.Entry(dir)
	return code, err == nil && slices.Equal(e.Failed, []string{"availability"}), nil
}
