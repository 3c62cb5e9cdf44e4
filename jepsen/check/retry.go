package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// checkRetryAfter: let d be a denial at time t(d) that names the wait w(d), and e the
// next decision of a round about the key, under the same limit, with nothing in between
// that changed it. Then
//
//	t(e) >= t(d) + w(d) and cost(e) <= cost(d):  e is allowed
//	t(e) <  t(d) + w(d) and cost(e) >= cost(d):  e is denied
//	w(d) = -1 (never) if and only if cost(d) > burst
//
// so a wait is never too short, and no longer than need be. (That the client was told
// w(d) in whole seconds, rounded up, is the witness's to say.) For a denial that a node
// gave alone, what is next begins behind the entries that it may have seen. Nothing of
// the limiter's formula is used; the traces are trusted for times and order.
func checkRetryAfter(e *evidence, r *result) {
	changed := map[key][]*decision{} // that changed it, in order
	rounds := map[key][]*decision{}
	for _, d := range e.agreed() {
		for _, k := range d.keys() {
			rounds[k] = append(rounds[k], d)
			if d.changes() && d.tookEffect() {
				changed[k] = append(changed[k], d)
			}
		}
		if d.keys() == nil {
			for k := range rounds {
				if d.call.Op == "flushall" || k.ns == d.call.NS {
					changed[k] = append(changed[k], d)
				}
			}
		}
	}
	for _, d := range e.decisions {
		c := d.call
		if c.Op != "take" || c.Allowed {
			continue
		}
		r.Checked++
		if (c.Retry == -1) != (c.Cost > c.Burst) || c.Retry == 0 {
			r.bad(d.example(fmt.Sprintf("a denial of %d from %d says to wait %d ns", c.Cost, c.Burst, c.Retry)))
			continue
		}
		k := key{c.NS, c.Key}
		if c.Retry > 0 {
			e.judgeWait(d, rounds[k], changed[k], r)
		}
	}
}

// judgeWait looks at the first decisions after the denial, up to one that changes the key.
func (e *evidence) judgeWait(d *decision, rounds, changed []*decision, r *result) {
	c := d.call
	later := func(list []*decision) []*decision {
		i, _ := slices.BinarySearchFunc(list, d, func(x, d *decision) int {
			if d.round != nil {
				return cmp.Compare(x.order, d.order+1)
			}
			if x.at() <= d.local.Index { // a round without effect stands on its base
				return -1
			}
			return 1
		})
		return list[i:]
	}
	stop := math.MaxInt
	if next := later(changed); len(next) > 0 {
		if d.local != nil && next[0].at() <= e.seen(d.local) {
			return // the node may have applied it
		}
		stop = next[0].order
	}
	for _, x := range later(rounds) {
		if x.order > stop {
			return
		}
		y := x.call
		if y.Op != "take" || y.Cost < 0 || y.Interval != c.Interval || y.Burst != c.Burst {
			continue
		}
		past := x.row.At-d.row.At >= c.Retry
		switch {
		case past && y.Cost <= c.Cost && !y.Allowed:
			r.bad(d.against(x, fmt.Sprintf("a denial of %d at %d said to wait %d ns; %d were denied at %d, %d ns later", c.Cost, d.row.At, c.Retry, y.Cost, x.row.At, x.row.At-d.row.At)))
			return
		case !past && y.Cost >= c.Cost && y.Allowed && x.row.At >= d.row.At:
			r.bad(d.against(x, fmt.Sprintf("a denial of %d at %d said to wait %d ns; %d were allowed at %d, %d ns later", c.Cost, d.row.At, c.Retry, y.Cost, x.row.At, x.row.At-d.row.At)))
			return
		}
	}
}

// at is the index that a decision of a round stands at: of its entry, or of the one
// that it was decided on.
func (d *decision) at() uint64 {
	if d.round.entry != nil {
		return d.round.entry.Index
	}
	return d.row.Base
}

// example of a decision.
func (d *decision) example(says string) Example {
	x := Example{Says: says, Key: key{d.call.NS, d.call.Key}.String(), Node: d.row.Node, Rows: lines(d.row)}
	if d.op != nil {
		x.Events = d.op.events()
	}
	return x
}

// against is an example of two decisions.
func (d *decision) against(o *decision, says string) Example {
	x := d.example(says)
	x.Rows = append(x.Rows, o.row.String())
	if o.op != nil {
		x.Events = append(x.Events, o.op.events()...)
	}
	return x
}
