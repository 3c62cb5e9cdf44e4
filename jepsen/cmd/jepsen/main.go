// Command jepsen breaks a cluster of real limitd processes and judges what it did.
//
//	jepsen run -seed 1 -nemesis all -time 25s -dir D    make a run and judge it
//	jepsen check D                                      judge a run again, from its files alone
//	jepsen report D                                     the page of a run or of a soak, for people
//	jepsen soak -time 2h -dir D                         run after run, a line for each in D/soak.jsonl
//	jepsen soak -summary -dir D                         what the runs of a soak say together
//	jepsen ci                                           the runs of every change, and the quick part of the self-test
//	jepsen selftest                                     known-bad builds, each of which must be reported
//
// Exit codes: 0 valid, 1 invalid, 2 the verdict is unknown or there is no run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
	"limitd/jepsen/lab"
	"limitd/jepsen/report"
	"limitd/jepsen/run"
)

const (
	valid   = 0
	invalid = 1
	unknown = 2
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: jepsen run | check | report | soak | selftest | ci")
		os.Exit(unknown)
	}
	verbs := map[string]func([]string) (int, error){"run": runVerb, "check": checkVerb, "report": reportVerb, "soak": soakVerb, "selftest": selftestVerb, "ci": ciVerb}
	verb, ok := verbs[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "jepsen: there is no verb %q: run, check, report, soak or selftest\n", os.Args[1])
		os.Exit(unknown)
	}
	code, err := verb(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "jepsen:", err)
		code = unknown
	}
	os.Exit(code)
}

// runFlags are the options of a run as flags.
func runFlags(f *flag.FlagSet) *run.Options {
	o := &run.Options{Env: map[string]string{}}
	f.StringVar(&o.Profile, "profile", "run", "a name for what the run is part of")
	f.Func("env", "NAME=VALUE for the nodes; may be repeated", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("want NAME=VALUE, not %q", s)
		}
		o.Env[name] = value
		return nil
	})
	f.Uint64Var(&o.Seed, "seed", 1, "of all that is drawn")
	f.StringVar(&o.Nemeses, "nemesis", "all", "names, separated by commas; all or none")
	f.DurationVar(&o.Time, "time", 25*time.Second, "for how long faults begin")
	f.StringVar(&o.Dir, "dir", "", "run directory; default: a new one in the system's place for temporary files")
	f.IntVar(&o.Nodes, "nodes", 3, "voters")
	f.IntVar(&o.Workers, "workers", 12, "connections of clients")
	f.Float64Var(&o.Rate, "rate", 400, "operations per second")
	f.StringVar(&o.Binary, "binary", "", "limitd, built by jepsen; default: build it")
	return o
}

func runVerb(args []string) (int, error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	o := runFlags(f)
	tags := f.String("tags", "", "build tags of the binary")
	if err := f.Parse(args); err != nil {
		return unknown, nil
	}
	if !lab.Inside() {
		return lab.Enter()
	}
	if err := place(o); err != nil {
		return unknown, err
	}
	if o.Binary == "" {
		var err error
		if o.Binary, err = run.Build(o.Dir, *tags); err != nil {
			return unknown, err
		}
	}
	o.Gates = map[string]int64{"operations": int64(o.Time.Seconds()) * 20, "denied_percent": 5, "allowed_percent": 5}
	o.Replay = fmt.Sprintf("go run ./jepsen/cmd/jepsen run -seed %d -nemesis %s -time %v -nodes %d -workers %d -rate %v", o.Seed, o.Nemeses, o.Time, o.Nodes, o.Workers, o.Rate)
	if err := run.Run(*o); err != nil {
		_, says := reportVerb([]string{o.Dir}) // of what there is
		return unknown, errors.Join(err, says)
	}
	fmt.Println(o.Dir)
	code, err := judge(o.Dir)
	_, says := reportVerb([]string{o.Dir})
	return code, errors.Join(err, says)
}

// place makes the run directory.
func place(o *run.Options) (err error) {
	if o.Dir == "" {
		o.Dir, err = os.MkdirTemp("", "limitd-jepsen-")
		return err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.Dir, history.EventsFile)); err == nil {
		return fmt.Errorf("-dir %s holds a run already", o.Dir)
	}
	return os.MkdirAll(o.Dir, 0o755)
}

// judge has the run judged by a process of its own, which is told nothing but where
// the files are.
func judge(dir string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return unknown, err
	}
	cmd := exec.Command(self, "check", dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		return unknown, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func checkVerb(args []string) (int, error) {
	if len(args) != 1 || strings.HasPrefix(args[0], "-") {
		return unknown, fmt.Errorf("usage: jepsen check DIR")
	}
	v, err := check.Run(args[0])
	if err != nil {
		return unknown, err
	}
	show(v)
	if err := history.WriteEDN(args[0]); err != nil {
		return unknown, err
	}
	if err := report.Write(args[0]); err != nil {
		return unknown, err
	}
	fmt.Println(filepath.Join(args[0], "report.html"))
	switch v.Status {
	case check.Valid:
		return valid, nil
	case check.Invalid:
		return invalid, nil
	}
	return unknown, nil
}

// show prints a verdict, a line for each check and its first counter-examples.
func show(v check.Verdict) {
	for _, c := range v.Checks {
		fmt.Printf("%-20s %-8s %8d checked  %s\n", c.Name, c.Status, c.Checked, c.Says)
		for i, e := range c.Examples {
			if i < 3 {
				fmt.Printf("    %s\n", e.Says)
			}
		}
	}
	fmt.Printf("%s: %d operations, %d leader changes\n", v.Status, v.Figures["operations"], v.Figures["leader_changes"])
}
