package report

import (
	"cmp"
	"slices"
	"strings"

	"limitd/jepsen/history"
)

// fault is what a nemesis did, from its start to its stop.
type fault struct {
	name     string
	from, to int64 // ns since the run began
	targets  []string
	detail   string
	open     bool // it has no stop: drawn up to the end
}

// findFaults pairs the nemeses' starts and stops: a stop ends what its nemesis has
// begun on its targets, or, if it names others, what that began last. A stop that
// ends nothing, and what is neither, is a moment.
func findFaults(events []history.Event, end int64) (all []fault) {
	for _, e := range events {
		if e.Process != history.Nemesis {
			continue
		}
		f := fault{name: e.F, from: e.Time, to: e.Time, targets: e.Targets, detail: e.Detail}
		switch e.Phase {
		case "start":
			f.to, f.open = end, true
		case "stop":
			if stop(all, e) {
				continue
			}
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.from, b.from) })
	return all
}

// stop ends faults, and says whether there were any to end.
func stop(all []fault, e history.Event) bool {
	newest, found := -1, false
	for i := range all {
		f := &all[i]
		if f.name != e.F || !f.open {
			continue
		}
		newest = i
		within := !slices.ContainsFunc(f.targets, func(id string) bool { return !slices.Contains(e.Targets, id) })
		if within || len(e.Targets) == 0 {
			f.to, f.open, found = e.Time, false, true
		}
	}
	if newest >= 0 && !found {
		all[newest].to, all[newest].open = e.Time, false
	}
	return newest >= 0
}

// kinds are the names of the faults, in the order of their first one.
func kinds(all []fault) (names []string) {
	for _, f := range all {
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}

// says is the fault for people.
func (f *fault) says() string {
	words := []string{f.name}
	if len(f.targets) > 0 {
		words = append(words, "on "+strings.Join(f.targets, ", "))
	}
	if f.detail != "" {
		words = append(words, "("+f.detail+")")
	}
	words = append(words, "from "+seconds(f.from))
	switch {
	case f.open:
		words = append(words, "to the end")
	case f.to > f.from:
		words = append(words, "to "+seconds(f.to))
	}
	return strings.Join(words, " ")
}
