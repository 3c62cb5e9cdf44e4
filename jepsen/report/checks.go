package report

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"limitd/jepsen/check"
)

// neighbours is how many operations of the same key are shown to each side of a
// counter-example.
const neighbours = 20

// checkRow is a line of the table of invariants.
type checkRow struct {
	Status, Name, Says string
	Promises           []string
	Checked            int64
	Figures            string
	Case               string // the place on the page of the first counter-example
}

func checkRows(all []check.Result) (rows []checkRow) {
	for _, c := range all {
		row := checkRow{Status: status(c.Status), Name: show(c.Name), Says: show(c.Says), Promises: words(c.Promise), Checked: c.Checked}
		var said []string
		for _, name := range slices.Sorted(maps.Keys(c.Figures)) {
			said = append(said, show(strings.ReplaceAll(name, "_", " "))+" "+count(c.Figures[name]))
		}
		row.Figures = strings.Join(said, ", ")
		if len(c.Examples) > 0 {
			row.Case = caseID(c.Name)
		}
		rows = append(rows, row)
	}
	return rows
}

// words are the names in a list that people wrote.
func words(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' })
}

func caseID(name string) string { return "case-" + url.PathEscape(name) }

// fileName is a key as a file is named for it.
func fileName(key string) string { return url.PathEscape(key) }

// counterExample is the first one of a check, with what happened around it.
type counterExample struct {
	ID, Check, Status, Says string
	Key, Node               string
	Picture                 string // porcupine's page for the key
	While                   []string
	Before, After           int64 // operations of the key that are not shown
	Ops                     []neighbour
	Rows                    []string
	Logs                    []excerpt
	More                    []string // the other counter-examples, in a line each
}

// neighbour is an operation of the same key.
type neighbour struct {
	Cited         bool
	Events        string
	Time, Took    string
	Node, Process string
	Command       string
	Outcome       string
	Class         string
	Said          string
}

// cases are the first counter-example of each check that has one.
func (r *run) cases() (all []*counterExample) {
	for _, c := range r.verdict.Checks {
		if len(c.Examples) == 0 {
			continue
		}
		e := c.Examples[0]
		x := &counterExample{ID: caseID(c.Name), Check: show(c.Name), Status: status(c.Status), Says: e.Says, Key: e.Key, Node: e.Node, Rows: e.Rows}
		for _, other := range c.Examples[1:] {
			x.More = append(x.More, other.Says)
		}
		r.around(x, e)
		all = append(all, x)
	}
	return all
}

// around finds the operations that the counter-example names, and with them its
// neighbours of the same key, the faults of that time and what nodes printed then.
func (r *run) around(x *counterExample, e check.Example) {
	cited := map[int]bool{}
	for _, index := range e.Events {
		if i, ok := r.byEvent[index]; ok {
			cited[i] = true
			if x.Key == "" {
				x.Key = r.ops[i].begin.Key
			}
		}
	}
	if x.Key != "" {
		x.Picture = r.picture(x.Key)
	}
	if len(cited) == 0 {
		return
	}
	from, to := r.end, int64(0)
	for i := range cited {
		o := &r.ops[i]
		from, to = min(from, o.begin.Time), max(to, o.begin.Time, o.end.Time)
	}
	for i := range r.faults {
		if f := &r.faults[i]; f.from <= to && f.to >= from {
			x.While = append(x.While, f.says())
		}
	}
	x.Logs = r.excerpts(from, to)
	r.list(x, cited)
}

// list shows the operations of the key from the first cited one to the last, and
// the neighbours to both sides. The middle of a long stretch is left out.
func (r *run) list(x *counterExample, cited map[int]bool) {
	var mine []int
	first, last := -1, -1
	for i := range r.ops {
		if r.ops[i].begin.Key != x.Key && !cited[i] {
			continue
		}
		if cited[i] {
			if last = len(mine); first < 0 {
				first = last
			}
		}
		mine = append(mine, i)
	}
	from, to := max(0, first-neighbours), min(len(mine), last+neighbours+1)
	x.Before, x.After = int64(from), int64(len(mine)-to)
	for k := from; k < to; k++ {
		if skip := last - neighbours - k; k == first+neighbours+1 && skip > 0 {
			x.Ops = append(x.Ops, neighbour{Command: fmt.Sprintf("… %d more …", skip)})
			k += skip
		}
		x.Ops = append(x.Ops, r.neighbour(mine[k], cited[mine[k]]))
	}
}

func (r *run) neighbour(i int, cited bool) neighbour {
	o := &r.ops[i]
	n := neighbour{
		Cited: cited, Events: fmt.Sprint(o.begin.Index), Time: seconds(o.begin.Time), Took: "never ended", Node: o.begin.Node, Process: fmt.Sprint(o.begin.Process),
		Command: strings.Join(o.begin.Cmd, " "), Outcome: outcomeNames[o.outcome()], Class: outcomeClasses[o.outcome()], Said: o.said(),
	}
	if o.ended {
		n.Events += "–" + fmt.Sprint(o.end.Index)
		n.Took = duration(o.took())
	}
	return n
}
