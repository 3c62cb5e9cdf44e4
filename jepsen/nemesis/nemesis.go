// Package nemesis holds what is done to a cluster, and the schedule of it. Each fault
// is a small function: it begins the fault, waits, and ends it; what it forgets, the
// schedule heals. Whom it hits and for how long comes from the seed; leaders are
// asked for by name and hit more often than others.
package nemesis

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
	"limitd/jepsen/workload"
)

// Nemesis is one kind of fault.
type Nemesis struct {
	Name  string
	Why   string // what it has found elsewhere
	Group string // at most one of a group at a time
	Needs []lab.Ability
	Run   func(ctx context.Context, e *Env) error
}

// All are the nemeses, by name.
var All = slices.Concat(network, process, disks, clocks, membership, hostile)

// Find returns the nemeses with these names, separated by commas; "all" are all, and
// "none" is none. The second result is a name that is unknown.
func Find(names string) (found []Nemesis, unknown string) {
	switch names {
	case "all":
		return All, ""
	case "none", "":
		return nil, ""
	}
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(All, func(n Nemesis) bool { return n.Name == name })
		if i < 0 {
			return nil, name
		}
		found = append(found, All[i])
	}
	return found, ""
}

// Env is what a nemesis works on.
type Env struct {
	Lab      lab.Lab
	Ask      workload.Dialer
	Rand     *rand.Rand
	Members  *Members
	Recorder *history.Recorder
	name     string
}

// As is the environment for one nemesis, with random numbers of its own.
func (e *Env) As(name string, r *rand.Rand) *Env {
	other := *e
	other.name, other.Rand = name, r
	return &other
}

// begin and end note the fault in the history.
func (e *Env) begin(targets []string, detail string) { e.note("start", targets, detail) }
func (e *Env) end(targets []string, detail string)   { e.note("stop", targets, detail) }

func (e *Env) note(phase string, targets []string, detail string) {
	e.Recorder.Event(history.Event{Type: history.Info, Process: history.Nemesis, F: e.name, Phase: phase, Targets: targets, Detail: detail})
}

// wait lets a fault last from least to most; false if the run is over.
func (e *Env) wait(ctx context.Context, least, most time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(least + time.Duration(e.Rand.Int64N(int64(most-least)+1))):
		return true
	}
}

// victim is the leader six times of ten, else any member.
func (e *Env) victim() lab.Node {
	members := e.Members.List()
	id := members[e.Rand.IntN(len(members))]
	if e.Rand.IntN(10) < 6 {
		if l := e.leader(); l != "" {
			id = l
		}
	}
	return e.Lab.Node(id)
}

func (e *Env) leader() string { return e.Ask.Leader(e.Members.List()) }

// follower is a member that does not lead.
func (e *Env) follower() lab.Node {
	leader := e.leader()
	others := slices.DeleteFunc(e.Members.List(), func(id string) bool { return id == leader })
	return e.Lab.Node(others[e.Rand.IntN(len(others))])
}

// some are n members in random order.
func (e *Env) some(n int) []string {
	all := e.Members.List()
	e.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

func (e *Env) majority() int { return len(e.Members.List())/2 + 1 }
