package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
)

// Entry is what a ledger keeps of the judged run in dir.
func Entry(dir string) (history.SoakRun, error) {
	var meta history.Run
	var o Options
	var v check.Verdict
	if err := errors.Join(history.ReadJSON(dir, OptionsFile, &o), history.ReadJSON(dir, history.RunFile, &meta)); err != nil {
		return history.SoakRun{}, err
	}
	if err := history.ReadJSON(dir, history.VerdictFile, &v); err != nil {
		return history.SoakRun{}, err
	}
	events, err := history.ReadEvents(dir)
	if err != nil {
		return history.SoakRun{}, err
	}
	e := history.SoakRun{
		Seed: meta.Seed, Profile: meta.Profile, Nodes: o.Nodes, Commit: meta.Commit, Mode: meta.Mode, Started: meta.Started, Duration: meta.Duration,
		Verdict: string(v.Status), Faults: map[string]int64{}, NoService: pauses(events),
	}
	for _, c := range v.Checks {
		if c.Status != check.Valid {
			e.Failed = append(e.Failed, c.Name)
		}
	}
	for _, x := range events {
		switch {
		case x.Process == history.Nemesis && x.Phase == "start":
			e.Faults[x.F]++
		case x.Type == history.Invoke:
			e.Operations++
		}
	}
	e.LeaderChanges, err = leaderChanges(dir)
	return e, err
}

// leaderChanges counts the terms that had a leader, less the first one.
func leaderChanges(dir string) (int64, error) {
	samples, err := history.ReadSamples(dir)
	if err != nil {
		return 0, err
	}
	terms := map[uint64]bool{}
	for _, s := range samples {
		if s.Role == "leader" {
			terms[s.Term] = true
		}
	}
	return max(0, int64(len(terms))-1), nil
}

// pauses are, for each fault by kind, the longest time without an admission that
// touches the time from its start to its stop.
func pauses(events []history.Event) map[string][]int64 {
	var admitted []int64
	for _, e := range events {
		if list, ok := e.Reply.([]any); ok && e.Type == history.OK && e.F == "take" && len(list) == 5 && list[0] == int64(0) {
			admitted = append(admitted, e.Time)
		}
	}
	out := map[string][]int64{}
	open := map[string]int64{}
	for _, e := range events {
		if e.Process != history.Nemesis {
			continue
		}
		if e.Phase == "start" {
			if _, ok := open[e.F]; !ok {
				open[e.F] = e.Time
			}
			continue
		}
		from, ok := open[e.F]
		if !ok {
			continue
		}
		delete(open, e.F)
		longest := int64(0)
		i, _ := slices.BinarySearch(admitted, from)
		for i = max(1, i); i < len(admitted) && admitted[i-1] <= e.Time; i++ {
			longest = max(longest, admitted[i]-admitted[i-1])
		}
		out[e.F] = append(out[e.F], longest)
	}
	return out
}

// Append adds a line to the ledger in dir.
func Append(dir string, e history.SoakRun) error {
	f, err := os.OpenFile(filepath.Join(dir, history.LedgerFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(e), f.Close())
}

// Summary is what the runs of a ledger say together, as a table of Markdown.
func Summary(all []history.SoakRun) string {
	var b strings.Builder
	var duration, operations, leaders int64
	verdicts := map[string]int{}
	faults, worst := map[string]int64{}, map[string][]int64{}
	for _, e := range all {
		duration, operations, leaders = duration+e.Duration, operations+e.Operations, leaders+e.LeaderChanges
		verdicts[e.Verdict]++
		for k, n := range e.Faults {
			faults[k] += n
			worst[k] = append(worst[k], e.NoService[k]...)
		}
	}
	fmt.Fprintf(&b, "%d runs, %.1f hours, %d operations, %d leader changes; ", len(all), float64(duration)/3.6e12, operations, leaders)
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		fmt.Fprintf(&b, "%d %s ", verdicts[v], v)
	}
	b.WriteString("\n\n| fault | times | without an admission: median | worst |\n|---|---|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(faults)) {
		times := slices.Sorted(slices.Values(worst[k]))
		if len(times) == 0 {
			fmt.Fprintf(&b, "| %s | %d | | |\n", k, faults[k])
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %.2f s | %.2f s |\n", k, faults[k], float64(times[len(times)/2])/1e9, float64(times[len(times)-1])/1e9)
	}
	return b.String()
}
