package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
	"limitd/jepsen/lab"
	"limitd/jepsen/run"
)

// runVerb makes a run and judges it.
func runVerb(args []string) (int, error) {
	o, err := runOptions(args)
	if err != nil {
		return unknown, err
	}
	return attempt(o)
}

// runOptions are those of a profile, and what flags change of it.
func runOptions(args []string) (run.Options, error) {
	o, err := run.Profile(profileOf(args))
	if err != nil {
		return o, err
	}
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.StringVar(&o.Profile, "profile", o.Profile, "options that belong together, of which the other flags change some: "+strings.Join(run.Profiles(), ", "))
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of all that is drawn")
	f.StringVar(&o.Nemeses, "nemesis", o.Nemeses, "names, separated by commas; all or none")
	f.DurationVar(&o.Time, "time", o.Time, "for how long faults begin")
	f.StringVar(&o.Dir, "dir", "", "run directory; default: a new one in the system's place for temporary files")
	f.IntVar(&o.Nodes, "nodes", o.Nodes, "voters at the start")
	f.IntVar(&o.Workers, "workers", o.Workers, "connections of clients")
	f.Float64Var(&o.Rate, "rate", o.Rate, "operations per second")
	f.BoolVar(&o.Slow, "slow", o.Slow, "links can be slow, lossy and narrow")
	f.BoolVar(&o.Proxy, "proxy", o.Proxy, "no namespaces and no root: TCP proxies on loopback")
	f.StringVar(&o.Store, "log-store", o.Store, "of the nodes: bolt or wal; default: the nodes' default")
	f.StringVar(&o.Binary, "binary", "", "limitd, built by jepsen; default: build it")
	f.StringVar(&o.Tags, "tags", "", "build tags of the binary")
	f.StringVar(&o.From, "from", "", "commit that upgrade and downgrade take for the older one; default: the newest that makes another binary")
	f.StringVar(&o.Previous, "previous", "", "limitd of that commit, built by jepsen; default: build it")
	f.Func("env", "NAME=VALUE for the nodes; may be repeated", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("want NAME=VALUE, not %q", s)
		}
		o.Env[name] = value
		return nil
	})
	if err := flags(f, args, 0); err != nil {
		return o, err
	}
	return o, o.Validate()
}

// profileOf finds the profile, whose options are the defaults of the other flags.
func profileOf(args []string) string {
	for i, a := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		switch {
		case a == name || name != "profile":
		case ok:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return "run"
}

// replayVerb makes a run with the seed and options of another one, beside it.
func replayVerb(args []string) (int, error) {
	f := flag.NewFlagSet("replay", flag.ContinueOnError)
	dir := f.String("dir", "", "run directory; default: a new one in the system's place for temporary files")
	if err := flags(f, args, 1); err != nil {
		return unknown, err
	}
	var o run.Options
	if err := history.ReadJSON(f.Arg(0), run.OptionsFile, &o); err != nil {
		return unknown, err
	}
	o.Dir = *dir
	if _, err := os.Stat(o.Binary); err != nil {
		o.Binary = "" // built again, of today's sources
	}
	if _, err := os.Stat(o.Previous); err != nil {
		o.Previous = "" // built again, of the same commit
	}
	return attempt(o)
}

// attempt makes one run, in namespaces of its own, and judges it. Where there can be no
// namespaces it says what that leaves out.
func attempt(o run.Options) (int, error) {
	if !o.Proxy && !lab.Inside() {
		code, err := lab.Enter()
		if !errors.Is(err, lab.ErrUnable) {
			return code, err
		}
		fmt.Printf("skipped: namespaces, and all that needs them: %v\n", err)
		o.Proxy, o.Slow = true, false
	}
	if err := place(&o); err != nil {
		return unknown, err
	}
	if o.Binary == "" {
		var err error
		if o.Binary, err = run.Build(o.Dir, o.Tags); err != nil {
			return unknown, err
		}
	}
	if o.WantsOlder() {
		if err := o.FindOlder(o.Dir); err != nil {
			return unknown, err
		}
	}
	err := run.Run(o)
	fmt.Println(o.Dir)
	code := unknown
	if err == nil {
		code, err = self("check", o.Dir)
	}
	_, says := self("report", o.Dir) // of what there is
	return code, errors.Join(err, says)
}

// place makes the run directory.
func place(o *run.Options) (err error) {
	if o.Dir == "" {
		o.Dir, err = scratch("limitd-jepsen-")
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

// self runs this program for another verb, as a process of its own that is told nothing
// but where the files are, and returns its exit code.
func self(args ...string) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return unknown, err
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LIMITD_MUTANT=") })
	if err := cmd.Run(); cmd.ProcessState == nil {
		return unknown, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// checkVerb judges a run from its files.
func checkVerb(args []string) (int, error) {
	if len(args) != 1 || strings.HasPrefix(args[0], "-") {
		return unknown, errors.New("usage: jepsen check DIR")
	}
	v, err := check.Run(args[0])
	if err != nil {
		return unknown, err
	}
	show(v)
	if err := history.WriteEDN(args[0]); err != nil {
		return unknown, err
	}
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
