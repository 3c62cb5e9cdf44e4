package report

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// logLine is a line of a node's log. One without a time has that of the line before,
// as in a panic's trace.
type logLine struct {
	time time.Time
	text string
}

func (r *run) readLogs() {
	names := glob(r.dir, "log", ".log")
	if len(names) == 0 {
		r.lack("log/", "missing; what the nodes printed is not shown")
	}
	for _, id := range names {
		b, err := os.ReadFile(filepath.Join(r.dir, "log", id+".log"))
		if err != nil {
			r.lack(filepath.Join("log", id+".log"), trouble(err))
			continue
		}
		r.logs[id] = parseLog(string(b))
	}
}

func parseLog(text string) (lines []logLine) {
	var at time.Time
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "time="); ok {
			stamp, _, _ := strings.Cut(rest, " ")
			if t, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
				at = t
			}
		}
		if line != "" {
			lines = append(lines, logLine{at, line})
		}
	}
	return lines
}

// excerpt is a part of a node's log.
type excerpt struct {
	Node  string
	Lines []string
	Left  int // lines of the span that are not shown
}

const excerptLines = 40

// began is the wall clock at the beginning of the run. The first thing that a node
// prints and the first row of its trace are of one moment; without a trace, the run's
// own word counts, which has whole seconds.
func (r *run) began() (time.Time, bool) {
	for _, id := range r.nodes {
		boot, known := r.starts[id]
		if lines := r.logs[id]; known && r.boot != 0 && len(lines) > 0 && !lines[0].time.IsZero() {
			return lines[0].time.Add(time.Duration(r.boot - boot)), true
		}
	}
	t, err := time.Parse(time.RFC3339Nano, r.run.Started)
	return t, err == nil
}

// excerpts are what the nodes printed from a time of the run to another, and a second
// around it. The lines have the nodes' wall clocks.
func (r *run) excerpts(from, to int64) (all []excerpt) {
	began, known := r.began()
	if !known {
		return nil
	}
	first := began.Add(time.Duration(from) - time.Second)
	last := began.Add(time.Duration(to) + time.Second)
	for _, id := range r.nodes {
		e := excerpt{Node: id}
		for _, l := range r.logs[id] {
			switch {
			case l.time.Before(first) || l.time.After(last):
			case len(e.Lines) == excerptLines:
				e.Left++
			default:
				e.Lines = append(e.Lines, show(l.text))
			}
		}
		if len(e.Lines) > 0 {
			all = append(all, e)
		}
	}
	return all
}

// tails are the last lines of each log.
func (r *run) tails(n int) (all []excerpt) {
	for _, id := range r.nodes {
		lines := r.logs[id]
		e := excerpt{Node: id, Left: max(0, len(lines)-n)}
		for _, l := range lines[e.Left:] {
			e.Lines = append(e.Lines, show(l.text))
		}
		if len(e.Lines) > 0 {
			all = append(all, e)
		}
	}
	return all
}
