// Package nemesis holds what is done to a cluster, and what an operator does
// afterwards. Each fault is a small function: it begins, waits, and ends what it began;
// what it cannot end (a process that does not run, a member that was removed) the
// operator makes good. Whom a fault hits and for how long comes from the seed; leaders
// are asked for by name and are hit most.
//
// A fault that the lab cannot make is an error, and there is no run. What the cluster
// did that it must not do, as to end when it was not asked to, is a complaint, and makes
// the run invalid. No fault costs more than a minority of the nodes what they had on
// disk, and none leaves fewer than three voters for good.
package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
	"limitd/jepsen/workload"
)

// Part of a lab that a nemesis has to itself: two that take the same part are not at
// work at once.
type Part uint8

const (
	Links   Part = 1 << iota // cuts and qualities
	Nodes                    // processes, disks and files
	Clocks                   // wall clocks
	Members                  // the membership, and who leads
	Ports                    // connections of strangers
)

// Nemesis is one kind of fault.
type Nemesis struct {
	Name  string
	Why   string // the failure that it would show
	Takes Part
	Needs []lab.Ability
	Run   func(ctx context.Context, e *Env) error
}

// All are the nemeses.
var All = slices.Concat(cuts, links, kills, powerCuts, pauses, stops, upgrades, transfers, lags, memberships, clocks, disks, damages, hostile)

// Find returns the nemeses with these names, separated by commas; "all" are all, and
// "none" is none.
func Find(names string) (found []Nemesis, err error) {
	switch names {
	case "all":
		return slices.Clone(All), nil
	case "none", "":
		return nil, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(All, func(n Nemesis) bool { return n.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no nemesis %q: there are all, none, %s", name, strings.Join(Names(), ", "))
		}
		found = append(found, All[i])
	}
	return found, nil
}

// Names of all nemeses.
func Names() (names []string) {
	for _, n := range All {
		names = append(names, n.Name)
	}
	return names
}

// Draw returns one to three nemeses that can be at work at once, none if all is empty.
// How many numbers it takes from r depends on nothing else.
func Draw(r *rand.Rand, all []Nemesis) (drawn []Nemesis) {
	if len(all) == 0 {
		return nil
	}
	var taken Part
	for _, chance := range []float64{1, 0.4, 0.3} {
		n, yes := all[r.IntN(len(all))], r.Float64() < chance
		if yes && taken&n.Takes == 0 {
			taken |= n.Takes
			drawn = append(drawn, n)
		}
	}
	return drawn
}

// Env is what a nemesis works on.
type Env struct {
	Lab      lab.Lab
	Ask      workload.Dialer
	Rand     *rand.Rand
	Roster   *Roster
	Recorder *history.Recorder
	Serve    []string             // further arguments of every start of a node
	Wanted   int                  // members that the cluster should have at least
	Late     func() time.Duration // how long in all the machine did not keep up; nil: it always does

	name string
	says *complaints
}

// As is the environment for one nemesis, with random numbers of its own.
func (e *Env) As(name string, r *rand.Rand) *Env {
	other := *e
	if e.says == nil {
		e.says = &complaints{}
	}
	other.name, other.Rand, other.says = name, r, e.says
	return &other
}

// complaints are what the cluster did that it must not do.
type complaints struct {
	mu  sync.Mutex
	all []string
}

func (e *Env) complain(format string, args ...any) {
	if e.says == nil {
		e.says = &complaints{}
	}
	e.says.mu.Lock()
	defer e.says.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if e.name != "" {
		text = e.name + ": " + text
	}
	e.says.all = append(e.says.all, text)
}

// Complaints are what the cluster did so far that it must not do.
func (e *Env) Complaints() []string {
	if e.says == nil {
		return nil
	}
	e.says.mu.Lock()
	defer e.says.mu.Unlock()
	return slices.Clone(e.says.all)
}

// during notes a fault in the history for as long as act takes.
func (e *Env) during(targets []string, detail string, act func() error) error {
	targets = slices.Clone(targets)
	note := func(phase string) {
		e.Recorder.Event(history.Event{Type: history.Info, Process: history.Nemesis, F: e.name, Phase: phase, Targets: targets, Detail: detail})
	}
	note("start")
	defer note("stop")
	return act()
}

// wait lets a fault last from least to most; false if the run is over.
func (e *Env) wait(ctx context.Context, least, most time.Duration) bool {
	return sleep(ctx, least+time.Duration(e.Rand.Int64N(int64(most-least)+1)))
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
