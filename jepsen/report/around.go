package report

import (
	"fmt"
	"slices"
	"strings"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
)

// around finds the operations and rows that the counter-example names, and with them
// neighbours of the same key, the faults of that time and what nodes printed then.
func (r *run) around(x *counterExample, e check.Example) {
	cited := map[int]bool{}
	of := -1 // the operation whose key counts
	for _, index := range e.Events {
		if i, ok := r.byEvent[index]; ok {
			cited[i] = true
			if of < 0 {
				of = i
			}
		}
	}
	if x.Key == "" && of >= 0 {
		x.Key = r.ops[of].begin.Key
	}
	x.Pictures = r.picturesOf(x.Key)
	var times []int64
	for _, row := range e.Rows {
		c := r.citedRow(row, x.Key)
		x.Rows = append(x.Rows, c)
		if c.time != 0 {
			times = append(times, c.time)
		}
	}
	for i := range cited {
		o := &r.ops[i]
		times = append(times, o.begin.Time, max(o.begin.Time, o.end.Time))
	}
	if len(times) == 0 {
		return
	}
	from, to := slices.Min(times), slices.Max(times)
	for i := range r.faults {
		if f := &r.faults[i]; f.from <= to && f.to >= from {
			x.While = append(x.While, f.says())
		}
	}
	x.Logs = r.excerpts(from, to)
	if of >= 0 {
		r.list(x, r.ops[of].begin, cited)
	}
}

// list shows the operations of the key from the first cited one to the last, and
// the neighbours to both sides. The middle of a long stretch is left out.
func (r *run) list(x *counterExample, like history.Event, cited map[int]bool) {
	var mine []int
	first, last := -1, -1
	for i := range r.ops {
		if b := &r.ops[i].begin; (b.Key != like.Key || b.NS != like.NS) && !cited[i] {
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
