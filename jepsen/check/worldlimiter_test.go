package check

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"

	"limitd/jepsen/history"
	"limitd/trace"
)

// arrive: the node answers alone, or sends it to the leader.
func (w *world) arrive(o *asked) {
	n := o.node
	if n == w.leader && !w.busy || n != w.leader && n.heard > 0 && w.now-n.heard < 300*ms || (w.bug == "out-of-touch" || w.bug == "takeall-out-of-touch") && n.heard > 0 {
		now := w.clusterTime()
		if n != w.leader {
			gone := w.now - n.receipt[1]
			now = n.receipt[0] + gone - gone/1000
			if w.bug == "ahead" {
				now += 40 * ms
			}
		}
		c := o.call
		recs := n.records
		if c.Limit != "" || c.Op == "takeall" || c.Op == "reset" { // it may change them
			recs = maps.Clone(recs)
		}
		w.answer(maps.Clone(n.table), recs, &c, now)
		takes := c.Op == "take" || c.Op == "takeall"
		alone := takes && !c.Allowed && (c.Retry == -1 || c.Retry >= 20*ms)
		if n == w.leader {
			alone = takes && c.Cost >= 0 && (!c.Allowed || c.Op == "take" && c.Cost == 0 || c.Peek) || c.Op == "exists" || c.Op == "ttl" || c.Op == "list"
		} else if !takes || c.Peek || c.Op == "take" && c.Cost <= 0 || n.applied < n.fence && w.bug != "no-fence" && w.bug != "out-of-touch" && w.bug != "takeall-out-of-touch" {
			alone = false
		}
		if w.bug == "takeall-out-of-touch" && c.Op != "takeall" && n != w.leader {
			alone = false
		}
		if alone && c.ID == "" {
			o.call, o.at = c, now
			w.write(n, trace.Row{Kind: trace.Local, At: now, Index: n.applied, Upto: n.applied, Leading: n == w.leader, Calls: []trace.Call{c}})
			w.after(w.between(ms/20, ms/4), func() { w.end(o, history.OK, "") })
			return
		}
	}
	w.after(w.between(ms/20, ms/4), func() { w.forward(o, w.now) })
}

func (w *world) forward(o *asked, since int64) {
	switch {
	case o.over:
	case !o.node.up:
		w.end(o, history.Info, "connection reset")
	case w.bug == "stuck" && w.now > 6000*ms && w.now < 9500*ms:
		w.end(o, history.Fail, "CLUSTERDOWN no leader")
	case w.bug == "mute" && o.event.Tag == 100:
	case w.leader == nil && w.now-since > 200*ms:
		w.end(o, history.Fail, "CLUSTERDOWN no leader")
	case w.leader == nil:
		w.after(20*ms, func() { w.forward(o, since) })
	default:
		w.waiting = append(w.waiting, o)
		w.decideSoon()
	}
}

func (w *world) decideSoon() {
	if !w.busy && len(w.waiting) > 0 && w.leader != nil {
		w.busy = true
		epoch := w.epoch
		w.after(ms/50, func() {
			if epoch == w.epoch && w.leader != nil {
				w.decide()
			}
		})
	}
}

// decide is a round of the leader.
func (w *world) decide() {
	n, tasks := w.leader, w.waiting
	w.waiting = nil
	w.round[n]++
	r := trace.Row{Kind: trace.Round, Term: w.term, Round: w.round[n], Base: w.last, At: w.clusterTime()}
	view, recs := maps.Clone(n.table), maps.Clone(n.records)
	must := false
	touched := map[string]bool{}
	for _, o := range tasks {
		before, had := view[o.key]
		o.at = r.At
		w.answer(view, recs, &o.call, r.At)
		if after, has := view[o.key]; has != had || after != before {
			touched[o.key] = true
		}
		must = must || o.call.Op == "reset" || o.call.Cost < 0
		r.Calls = append(r.Calls, o.call)
	}
	var effects []trace.Effect
	for k := range w.limits {
		if !touched[k] {
			continue
		}
		if tat, ok := view[k]; ok && tat > r.At {
			effects = append(effects, trace.Effect{Op: "replace", Key: k, Identity: "01", State: hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, uint64(tat))), Expiry: tat})
		} else {
			effects = append(effects, trace.Effect{Op: "delete", Key: k, Identity: "01"})
		}
	}
	effects = append(effects, recs.effects(n.records)...)
	slices.SortFunc(effects, func(a, b trace.Effect) int {
		return cmp.Or(compareKeys(key{a.NS, a.Key}, key{b.NS, b.Key}), cmp.Compare(a.Identity, b.Identity))
	})
	finish := func() {
		for _, o := range tasks {
			if o.cost < 0 || o.op == "reset" {
				o.node.fence = w.index
			}
			w.after(w.between(ms/20, ms/4), func() {
				if !o.node.up {
					w.end(o, history.Info, "connection reset")
				}
				w.end(o, history.OK, "")
			})
		}
	}
	outcome := trace.Row{Kind: trace.Outcome, Term: r.Term, Round: r.Round, Outcome: "none"}
	epoch := w.epoch
	if len(effects) == 0 && !must {
		w.write(n, r)
		w.write(n, outcome)
		finish()
		w.busy = false
		w.decideSoon()
		return
	}
	r.Digest = w.digest()
	w.write(n, r)
	entry := trace.Row{Term: r.Term, At: r.At, Digest: r.Digest, Effects: effects}
	if w.bug == "ack-first" {
		finish()
	}
	w.flight = func(lost bool) {
		switch {
		case lost:
		case w.r.IntN(3) == 0:
			entry.Term, entry.Base = w.term+1, w.last // appended in another term than it was decided in
			w.commit(entry, true)
		default:
			w.commit(entry, false)
		}
		for _, o := range tasks {
			if w.bug == "doubt-refused" {
				w.end(o, history.Fail, "TRYAGAIN")
			}
			w.end(o, history.Info, "INDOUBT proposed")
		}
	}
	w.after(w.between(ms/2, 2*ms), func() {
		if epoch != w.epoch || w.leader != n {
			return
		}
		w.flight = nil
		index := w.commit(entry, false)
		outcome.Outcome, outcome.Index = "applied", index
		w.write(n, outcome)
		finish()
		w.busy = false
		w.decideSoon()
	})
}

// answer is the limiter of this world.
func (w *world) answer(table map[string]int64, recs records, c *trace.Call, now int64) {
	c.Status = "ok"
	switch {
	case c.Op == "takeall":
		w.answerAll(recs, c, now)
		return
	case c.Limit != "":
		w.answerLimit(recs, c, now)
		return
	case c.Op == "list":
		w.lists[c.Tag] = w.list(table, recs, c.Key, now)
		return
	}
	tat, ok := table[c.Key]
	debt := max(0, tat-now)
	for _, n := range recs.of(c.Key) {
		if debt = max(debt, recs[n].expiry-now); c.Op == "reset" {
			delete(recs, n)
		}
		ok = true
	}
	c.N = 0
	if ok && debt > 0 {
		c.N = 1
	}
	switch c.Op {
	case "reset":
		delete(table, c.Key)
		return
	case "ttl":
		c.N = debt
		if debt == 0 {
			c.N = -2
		}
		return
	case "exists":
		return
	}
	c.N = 0
	tau, inc := c.Interval*c.Burst, c.Interval*c.Cost
	c.Allowed, c.Retry = true, 0
	switch {
	case c.Cost < 0:
		debt = max(0, debt+inc)
		if w.bug == "refund-twice" {
			debt = max(0, debt+inc)
		}
	case debt+inc > tau && !(w.bug == "one-more" && debt+inc <= tau+c.Interval) || debt+inc == tau && w.bug == "one-less":
		c.Allowed = false
		c.Retry = max(1, debt+inc-tau)
		switch w.bug {
		case "short-waits":
			c.Retry = (c.Retry + 1) / 2
		case "long-waits":
			c.Retry *= 2
		}
		if c.Cost > c.Burst {
			c.Retry = -1
		}
	default:
		debt += inc
	}
	c.Reset = debt
	c.Remaining = max(0, tau-debt) / c.Interval
	if c.Allowed && c.Cost != 0 && !(w.bug == "forgetful" && c.Cost > 0 && w.r.IntN(20) == 0) {
		table[c.Key] = now + debt
		if debt == 0 {
			delete(table, c.Key)
		}
	}
}
