package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"limitd/jepsen/history"
	"limitd/trace"
)

// round is a round of a leader, for when it decided and at which cluster time.
type round struct {
	node string
	term uint64
	time int64 // ns since the run began, by the harness's clock
	at   int64 // cluster time, ns
}

// readTraces takes the rounds out of the traces. A row has its machine's boot clock;
// what that is by the harness's follows from tagged calls: each was decided between
// its invocation and its answer, and all together leave microseconds.
func (r *run) readTraces() {
	nodes := glob(r.dir, "trace", ".jsonl")
	if len(nodes) == 0 {
		r.lack("trace/", "missing; the leaders' decisions and their time are not shown")
		return
	}
	tags := make(map[uint64]*op, len(r.ops))
	for i := range r.ops {
		tags[r.ops[i].begin.Tag] = &r.ops[i]
	}
	low, high := int64(-1<<62), int64(1<<62)
	for _, id := range nodes {
		file := filepath.Join(r.dir, "trace", id+".jsonl")
		err := trace.Read(file, func(row trace.Row) error {
			if _, seen := r.starts[id]; row.Kind == trace.Start && !seen {
				r.starts[id] = row.Boot
			}
			if row.Kind != trace.Round {
				return nil
			}
			for _, c := range row.Calls {
				if o := tags[c.Tag]; c.Tag != 0 && o != nil {
					high = min(high, row.Boot-o.begin.Time)
					if o.end.Type == history.OK {
						low = max(low, row.Boot-o.end.Time)
					}
				}
			}
			r.rounds = append(r.rounds, round{id, row.Term, row.Boot, row.At})
			return nil
		})
		if err != nil {
			r.lack(filepath.Join("trace", id+".jsonl"), "read up to an error: "+err.Error())
		}
	}
	if low == -1<<62 || high == 1<<62 {
		r.rounds = nil // no call joins the two clocks
		return
	}
	r.boot = (low + high) / 2
	for i := range r.rounds {
		r.rounds[i].time -= r.boot
	}
	slices.SortFunc(r.rounds, func(a, b round) int { return cmp.Compare(a.time, b.time) })
}

// cited is a row that a check names as trace/NODE.jsonl:LINE.
type cited struct {
	Where, Text string
	time        int64 // of the run, 0: not known
}

// reference is how checks name a line of a file.
var reference = regexp.MustCompile(`^(trace|log)/([^/]+)\.(jsonl|log):([0-9]{1,9})$`)

// citedRow reads the line that a reference names, and leaves out of a trace's row the
// calls and effects of other keys. What is no reference stands for itself.
func (r *run) citedRow(text, key string) cited {
	x := cited{Text: text}
	part := reference.FindStringSubmatch(text)
	if part == nil {
		return x
	}
	n, _ := strconv.Atoi(part[4])
	line := lineOf(filepath.Join(r.dir, part[1], part[2]+"."+part[3]), n)
	if line == nil {
		return x
	}
	x.Where = text
	var row trace.Row
	if part[1] == "log" || json.Unmarshal(line, &row) != nil {
		x.Text = string(line)
		return x
	}
	if r.boot != 0 {
		x.time = row.Boot - r.boot
	}
	calls, effects := len(row.Calls), len(row.Effects)
	if key != "" {
		row.Calls = slices.DeleteFunc(row.Calls, func(c trace.Call) bool { return c.Key != key && !slices.Contains(c.More, key) })
		row.Effects = slices.DeleteFunc(row.Effects, func(e trace.Effect) bool { return e.Key != key && e.Key != "" })
	}
	if x.time != 0 {
		x.Where += ", at " + seconds(x.time)
	}
	if left := calls - len(row.Calls); left > 0 {
		x.Where += "; calls of other keys left out: " + count(int64(left))
	}
	if left := effects - len(row.Effects); left > 0 {
		x.Where += "; effects on other keys left out: " + count(int64(left))
	}
	short, err := json.Marshal(row)
	if err != nil {
		short = line
	}
	x.Text = string(short)
	return x
}

// lineOf is a line of a file, from 1 on; nil: there is none.
func lineOf(file string, n int) []byte {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for i := 1; ; i++ {
		line, err := in.ReadBytes('\n')
		if i == n {
			return bytes.TrimSpace(line)
		}
		if err != nil {
			return nil
		}
	}
}
