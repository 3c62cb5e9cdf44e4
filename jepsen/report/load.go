package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
)

// run is what could be read of a run directory.
type run struct {
	dir     string
	run     history.Run
	verdict *check.Verdict // nil: none
	ops     []op           // in the order of their invocation
	byEvent map[int]int    // index of an event: index in ops
	faults  []fault
	health  []history.Health
	samples []history.Sample
	rounds  []round
	boot    int64            // the machine's boot clock when the run began, 0: not known
	starts  map[string]int64 // of each node: the boot clock at its first start
	nodes   []string
	logs    map[string][]logLine
	end     int64 // of the newest thing that is known, ns since the run began
	links   []string
	lacks   []lack
}

// lack is a file that is missing, or of which a part could not be read.
type lack struct{ File, Says string }

func (r *run) lack(file, says string) { r.lacks = append(r.lacks, lack{file, says}) }

// load reads what there is.
func load(dir string) *run {
	r := &run{dir: dir, byEvent: map[int]int{}, logs: map[string][]logLine{}, starts: map[string]int64{}}
	r.readJSON(history.RunFile, "the seed, the settings and the line that replays the run are not known", &r.run)
	var v check.Verdict
	if r.readJSON(history.VerdictFile, "nothing was judged: run jepsen check on this directory", &v) {
		r.verdict = &v
	}
	events := readLines[history.Event](r, history.EventsFile, "there are no operations and no faults to show")
	r.health = readLines[history.Health](r, history.HealthFile, "it is not shown when nodes were down")
	r.samples = readLines[history.Sample](r, history.SamplesFile, "roles, terms and cluster time are not shown")
	r.join(events)
	r.span(events)
	r.faults = findFaults(events, r.end)
	r.readTraces()
	r.findNodes()
	r.readLogs()
	for _, f := range []string{
		history.RunFile, history.EventsFile, history.HealthFile, history.SamplesFile, history.ScheduleFile, history.VerdictFile, history.EDNFile, "trace", "log", "porcupine",
	} {
		if _, err := os.Stat(filepath.Join(dir, f)); err == nil {
			r.links = append(r.links, f)
		} else if f == history.ScheduleFile {
			r.lack(f, trouble(err)+"; the periods of faults are known from the history alone")
		}
	}
	return r
}

// span finds how long the run was: as it says, or up to the newest line.
func (r *run) span(events []history.Event) {
	r.end = r.run.Duration
	if n := len(events); n > 0 {
		r.end = max(r.end, events[n-1].Time)
	}
	for _, s := range r.samples {
		r.end = max(r.end, s.Time)
	}
}

// findNodes lists the nodes in the order of the run's own list, others behind.
func (r *run) findNodes() {
	r.nodes = slices.Clone(r.run.Nodes)
	var others []string
	note := func(id string) {
		if id != "" && !slices.Contains(r.nodes, id) && !slices.Contains(others, id) {
			others = append(others, id)
		}
	}
	for _, s := range r.samples {
		note(s.Node)
	}
	for _, x := range r.rounds {
		note(x.node)
	}
	for _, o := range r.ops {
		note(o.begin.Node)
	}
	for _, f := range glob(r.dir, "log", ".log") {
		note(f)
	}
	slices.Sort(others)
	r.nodes = append(r.nodes, others...)
}

// glob lists the files of a folder with a suffix, without it.
func glob(dir, folder, suffix string) (names []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, folder)) // none: nothing to show
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok && !e.IsDir() {
			names = append(names, name)
		}
	}
	return names
}
