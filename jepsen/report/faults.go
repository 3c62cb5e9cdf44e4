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

// findFaults pairs the nemeses' starts and stops: a stop ends the newest start of its
// name with the same targets, or else the newest of its name. A stop without a start,
// and what is neither, is a moment.
func findFaults(events []history.Event, end int64) (all []fault) {
	running := map[string][]int{} // by name: indexes in all, oldest first
	for _, e := range events {
		if e.Process != history.Nemesis {
			continue
		}
		f := fault{name: e.F, from: e.Time, to: e.Time, targets: e.Targets, detail: e.Detail}
		switch e.Phase {
		case "start":
			f.to, f.open = end, true
			running[e.F] = append(running[e.F], len(all))
		case "stop":
			if open := running[e.F]; len(open) > 0 {
				at := len(open) - 1
				for i, k := range open {
					if slices.Equal(all[k].targets, e.Targets) {
						at = i
					}
				}
				began := &all[open[at]]
				began.to, began.open = e.Time, false
				running[e.F] = slices.Delete(open, at, at+1)
				continue
			}
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.from, b.from) })
	return all
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
