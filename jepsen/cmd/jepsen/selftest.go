package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
	"limitd/jepsen/run"
)

// defect is a known-bad build, and how the lab must find it.
type defect struct {
	name    string
	checks  []string // each of which must report it
	nemesis string
	time    time.Duration
	seeds   int // tried one after the other
}

// defects are those of package mutant that real processes show.
var defects = []defect{
	{"ack-before-commit", []string{"durability"}, "kill-leader,isolate-leader", 20 * time.Second, 3},
	{"nosync", []string{"durability"}, "power-all,power-majority", 20 * time.Second, 3},
	{"local-clock-in-apply", []string{"replicas"}, "none", 6 * time.Second, 1},
	{"no-clamp-of-t", []string{"monotone"}, "clock-leader,clock-all,clock-strobe", 20 * time.Second, 3},
	{"last-not-in-snapshot", []string{"replicas"}, "lag,lag-dead", 20 * time.Second, 3},
	{"tat-rounded-to-ms", []string{"witness"}, "none", 6 * time.Second, 1},
	{"ge-at-burst-edge", []string{"witness"}, "none", 6 * time.Second, 1},
	{"refund-twice", []string{"witness"}, "none", 6 * time.Second, 1},
	{"snapshot-without-last-entry", []string{"replicas"}, "lag,lag-dead", 20 * time.Second, 3},
	{"void-batch-applied", []string{"witness"}, "kill-leader,pause,isolate-leader,transfer", 25 * time.Second, 4},
	{"indoubt-as-refused", []string{"in-doubt"}, "kill-leader,pause,isolate-leader", 20 * time.Second, 3},
	{"denial-out-of-touch", []string{"local-denials"}, "peers-only,isolate-one", 25 * time.Second, 4},
	{"transfer-without-guard", []string{"availability"}, "transfer-storm", 30 * time.Second, 4},
	{"takeall-partial", []string{"all-or-none", "witness"}, "none", 6 * time.Second, 1},
	{"id-not-kept", []string{"ids"}, "none", 6 * time.Second, 1},
	{"refund-id-twice", []string{"ids"}, "none", 6 * time.Second, 2},
}

// selftestVerb shows that the checkers see: each defect is reported by the checks that
// are for it, and the same seed without a defect is valid.
func selftestVerb(args []string) (int, error) {
	f := flag.NewFlagSet("selftest", flag.ContinueOnError)
	dir := f.String("dir", "", "directory for the runs; default: a new one")
	only := f.String("mutant", "", "names, separated by commas; default: all")
	binary := f.String("binary", "", "limitd, built by jepsen with the tag mutant; default: build it")
	if err := flags(f, args, 0); err != nil {
		return unknown, err
	}
	var err error
	if *dir == "" {
		*dir, err = scratch("limitd-selftest-")
	} else {
		err = os.MkdirAll(*dir, 0o755)
	}
	if err != nil {
		return unknown, err
	}
	if *binary == "" {
		if *binary, err = run.Build(*dir, "mutant"); err != nil {
			return unknown, err
		}
	}
	chosen := defects
	if *only != "" {
		chosen = nil
		for _, name := range strings.Split(*only, ",") {
			i := slices.IndexFunc(defects, func(d defect) bool { return d.name == name })
			if i < 0 {
				return unknown, fmt.Errorf("-mutant: there is no mutant %q", name)
			}
			chosen = append(chosen, defects[i])
		}
	}
	missed, clean := 0, map[string]bool{}
	for _, d := range chosen {
		says, err := d.find(*dir, *binary, clean)
		if err != nil {
			return unknown, err
		}
		fmt.Println(says)
		if strings.Contains(says, "MISSED") || strings.Contains(says, "FALSE ALARM") {
			missed++
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(chosen)-missed, missed)
	if missed > 0 {
		return invalid, nil
	}
	return valid, os.RemoveAll(*dir)
}

// find runs the defect until its checks report it, and then the same seed without it,
// unless that was done for another one.
func (d defect) find(dir, binary string, clean map[string]bool) (string, error) {
	seen := map[string]bool{}
	for seed := 1; seed <= d.seeds; seed++ {
		v, err := d.run(filepath.Join(dir, fmt.Sprintf("%s-%d", d.name, seed)), binary, seed, d.name)
		if err != nil {
			return "", err
		}
		for _, c := range v.Checks {
			if c.Status == check.Invalid {
				seen[c.Name] = true
			}
		}
		missing := slices.DeleteFunc(slices.Clone(d.checks), func(c string) bool { return seen[c] })
		if len(missing) > 0 {
			continue
		}
		says := fmt.Sprintf("%-28s seed %d: reported by %v", d.name, seed, slices.Collect(keysOf(seen)))
		key := fmt.Sprint(d.nemesis, d.time, seed)
		if clean[key] {
			return says, nil
		}
		at := filepath.Join(dir, fmt.Sprintf("%s-%d-clean", d.name, seed))
		v, err = d.run(at, binary, seed, "")
		if err != nil {
			return "", err
		}
		if v.Status != check.Valid {
			return fmt.Sprintf("%s; FALSE ALARM without it: %s (%s)", says, v.Status, at), nil
		}
		clean[key] = true
		return says, nil
	}
	return fmt.Sprintf("%-28s MISSED in %d seeds: want %v, reported by %v", d.name, d.seeds, d.checks, slices.Collect(keysOf(seen))), nil
}

func keysOf(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, d := range []string{"gates", "logs", "replicas", "witness", "durability", "all-or-none", "ids", "in-doubt", "monotone", "over-admission", "over-admission-wall", "local-denials", "retry-after", "porcupine", "availability"} {
			if m[d] && !yield(d) {
				return
			}
		}
	}
}

// run makes one run and returns its verdict.
func (d defect) run(dir, binary string, seed int, mutant string) (check.Verdict, error) {
	args := []string{"run", "-dir", dir, "-binary", binary, "-profile", "selftest", "-seed", fmt.Sprint(seed), "-nemesis", d.nemesis, "-time", d.time.String()}
	if mutant != "" {
		args = append(args, "-env", "LIMITD_MUTANT="+mutant)
	}
	if _, err := child(dir, args...); err != nil {
		return check.Verdict{}, err
	}
	var v check.Verdict
	if err := history.ReadJSON(dir, history.VerdictFile, &v); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "run.log"))
		return v, errors.Join(err, errors.New(string(log)))
	}
	return v, nil
}
