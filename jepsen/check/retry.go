package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"limitd/jepsen/check/model"
)

// checkRetryAfter: let d be a denial by a limit of a record at time t(d) that names the
// wait w(d), and e the next decision of a round about the record, under the same limit, with
// nothing in between that changed it. Then
//
//	t(e) >= t(d) + w(d) and cost(e) <= cost(d):  e is allowed
//	t(e) <  t(d) + w(d) and cost(e) >= cost(d):  e is denied
//	w(d) = -1 (never) if and only if cost(d) > burst
//
// so a wait is never too short, and no longer than need be; that holds for each limit of
// a call that names several, as if it were alone, and the call's own wait is the longest of
// them. (That the client was told w(d) in whole seconds or ms, rounded up, is the witness's
// to say.) For a denial that a node gave alone, what is next begins behind the entries that
// it may have seen. Nothing of the limiter's formula is used; the traces are trusted for
// times and order. Answers that are those of earlier calls are left out.
func checkRetryAfter(e *evidence, r *result) {
	w := waits{e: e, r: r, changed: map[model.Record][]*decision{}, asked: map[model.Record][]about{}}
	w.collect()
	for _, d := range e.decisions {
		if d.call.Repeated {
			continue
		}
		w.longest(d)
		for _, p := range d.parts {
			if p.allowed {
				continue
			}
			r.Checked++
			if (p.retry == model.Never) != (p.cost > p.limit.Burst) || p.retry == 0 {
				r.bad(d.example(fmt.Sprintf("a denial of %d from %d says to wait %d ns", p.cost, p.limit.Burst, p.retry)))
			} else if p.retry > 0 {
				w.judge(d, p)
			}
		}
	}
}

// about is a decision about a record.
type about struct {
	*decision
	part part
}

type waits struct {
	e       *evidence
	r       *result
	changed map[model.Record][]*decision // that changed it, in order
	asked   map[model.Record][]about
}

// collect the decisions about each record.
func (w *waits) collect() {
	byKey := map[key][]model.Record{}
	for _, d := range w.e.agreed() {
		for _, p := range d.parts {
			if d.call.Repeated {
				continue
			}
			if w.asked[p.record] == nil {
				byKey[key{p.record.NS, p.record.Key}] = append(byKey[key{p.record.NS, p.record.Key}], p.record)
			}
			w.asked[p.record] = append(w.asked[p.record], about{d, p})
			if p.cost < 0 || d.charges() && p.cost > 0 {
				w.change(p.record, d)
			}
		}
		switch d.call.Op {
		case "reset":
			for _, k := range d.keys() {
				for _, rec := range byKey[k] {
					w.change(rec, d)
				}
			}
		case "flush", "flushall":
			for rec := range w.asked {
				if d.call.Op == "flushall" || rec.NS == d.call.NS {
					w.change(rec, d)
				}
			}
		}
	}
}

func (w *waits) change(rec model.Record, d *decision) {
	if d.tookEffect() {
		w.changed[rec] = append(w.changed[rec], d)
	}
}

// longest: a call that names several limits names the longest wait.
func (w *waits) longest(d *decision) {
	c := d.call
	if c.Op != "takeall" || c.Allowed {
		return
	}
	w.r.Checked++
	longest, never := int64(0), false
	for _, p := range c.Parts {
		longest, never = max(longest, p.Retry), never || !p.Allowed && p.Retry == model.Never
	}
	if never {
		longest = model.Never
	}
	if c.Retry != longest || c.N < 0 || int(c.N) >= len(c.Parts) || c.Parts[c.N].Retry != longest {
		w.r.bad(d.example(fmt.Sprintf("several limits deny with a wait of %d ns, by limit %d, and the longest of theirs is %d ns", c.Retry, c.N, longest)))
	}
}

// judge looks at the first decisions after the denial, up to one that changes the record.
func (w *waits) judge(d *decision, p part) {
	after := func(x *decision) int {
		if d.round != nil {
			return cmp.Compare(x.order, d.order+1)
		}
		if x.at() <= d.local.Index { // a round without effect stands on its base
			return -1
		}
		return 1
	}
	stop := math.MaxInt
	changed := w.changed[p.record]
	if i, _ := slices.BinarySearchFunc(changed, d, func(x, _ *decision) int { return after(x) }); i < len(changed) {
		if d.local != nil && changed[i].at() <= w.e.seen(d.local) {
			return // the node may have applied it
		}
		stop = changed[i].order
	}
	all := w.asked[p.record]
	i, _ := slices.BinarySearchFunc(all, d, func(x about, _ *decision) int { return after(x.decision) })
	for _, x := range all[i:] {
		if x.order > stop {
			return
		}
		y := x.part
		if y.cost < 0 || y.limit != p.limit {
			continue
		}
		past := x.row.At-d.row.At >= p.retry
		what := ""
		switch {
		case past && y.cost <= p.cost && !y.allowed:
			what = "denied"
		case !past && y.cost >= p.cost && y.allowed && x.row.At >= d.row.At:
			what = "allowed"
		}
		if what != "" {
			w.r.bad(d.against(x.decision, fmt.Sprintf("a denial of %d at %d said to wait %d ns; %d were %s at %d, %d ns later", p.cost, d.row.At, p.retry, y.cost, what, x.row.At, x.row.At-d.row.At)))
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
