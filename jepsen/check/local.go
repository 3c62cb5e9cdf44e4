package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
	"limitd/trace"
)

// followersLeast is the shortest wait that a follower may name, ns: it knows the time
// only as a lower bound, so what is shorter is the leader's to say.
const followersLeast = 20_000_000

// checkLocalDenials judges what a node n answered alone, with H the heartbeat timeout
// of the nodes, i the entry whose state it was answered from, `now` the time it used:
//
//	some i in [index, upto], or the next one, makes the model's answer at `now` this one, in every field
//	no entry behind i that changed the key took effect 2H before the client asked, or earlier
//	no refund, DEL or flush of the key behind i was acknowledged through n before the client asked
//	now <= the time of the leader when the answer's row was written
//	a follower answers denials alone, with a wait of 20 ms or more; a leader also peeks and reads
//	what has an ID is nobody's alone
//
// Of a call that names several limits each answer is of some i of its own, for entries may
// be applied meanwhile; one limit that denies, of a state that misses nothing, is enough.
//
// Charges only make a denial truer, so a denial of a state that misses charges, and
// frees made through other nodes less than 2H ago, is what is promised, and nothing else
// is. An entry took effect when the first node had applied it; all these moments are
// taken on the side that accuses nobody. It trusts the traces, and the
// effects, which replicas and witness judge. A wait is exact for `now`, and `now` is
// not ahead, so a wait is never too short.
//
// The time that a follower uses may lag, so that a denial can be true of a moment
// before the client asked. That is not bounded by any promise; the figure late
// counts such denials.
func checkLocalDenials(e *evidence, r *result) {
	all := e.versions()
	l := locals{e: e, r: r, versions: all.of, kinds: all.kinds, effect: e.effectTimes(), freed: e.freedThrough()}
	if l.heartbeat = e.run.HeartbeatNS; l.heartbeat <= 0 {
		r.open(Example{Says: "run.json does not say heartbeat_ns, so there is no bound to judge by"})
		return
	}
	for _, d := range e.decisions {
		if d.local != nil {
			r.Checked++
			l.judge(d)
		}
	}
	r.figure("late", l.late)
}

type locals struct {
	e         *evidence
	r         *result
	heartbeat int64
	versions  map[model.Record][]version
	kinds     kinds
	effect    map[uint64]int64 // index: when it had taken effect, at the latest, harness's time
	freed     map[freedKey][]*decision
	late      int64
}

// seen is the newest entry that may have been seen by calls of a local row: the one
// behind upto may have been on its way.
func (e *evidence) seen(l *local) uint64 {
	newest := l.Upto
	if x := e.after(l.Upto); x != nil {
		newest = x.Index
	}
	for _, x := range l.node.rows[l.pos+1:] {
		if x.Kind == trace.Start || x.Kind == trace.Applied {
			break
		}
		if x.Kind == trace.Restored {
			newest = max(newest, x.Index)
			break
		}
	}
	return newest
}

// judge one answer.
func (l *locals) judge(d *decision) {
	l.rules(d)
	l.time(d)
	switch d.call.Op {
	case "take":
		if len(d.parts) == 1 {
			if v, ok := l.judgeOne(d, d.parts[0].record); ok {
				l.lag(d, v)
			}
		}
	case "takeall":
		l.judgeAll(d)
	case "exists", "type", "ttl":
		if len(d.keys()) != 1 {
			break
		}
		if k := d.keys()[0]; len(l.kinds[k]) > 0 {
			l.judgeRead(d)
		} else {
			l.judgeOne(d, model.Record{NS: k.ns, Key: k.name, Kind: model.Identity{Algorithm: model.Throttle}})
		}
	}
}

// judgeOne judges what was answered from one record. It returns the version that it was
// answered from, if that is found and not too old.
func (l *locals) judgeOne(d *decision, rec model.Record) (version, bool) {
	says, v := l.explain(d, rec, func(view model.View) string {
		want, err := model.Decide(d.call, d.row.At, l.e.idTTL(), view)
		return orError(want.Differs(d.call), err)
	})
	if says != "" {
		l.report(d, says)
		return v, false
	}
	if x := l.age(d, rec, v); x != nil {
		l.r.bad(*x)
		return v, false
	}
	return v, true
}

func orError(says string, err error) string {
	if err != nil {
		return err.Error()
	}
	return says
}

// explain finds a version of a record that makes the answer, the newest that does; or says
// how it is none of the oldest one.
func (l *locals) explain(d *decision, rec model.Record, differs func(model.View) string) (says string, v version) {
	candidates := during(l.versions[rec], d.local.Index, l.e.seen(d.local))
	slices.Reverse(candidates) // the newest that fits is believed
	for _, v := range candidates {
		why := differs(alone{func(r model.Record) model.State {
			if r == rec {
				return v.state
			}
			return model.State{}
		}, nil})
		if why == "" {
			return "", v
		}
		if says == "" {
			says = why
		}
	}
	return says, v
}

func (l *locals) report(d *decision, says string) {
	x := d.example(fmt.Sprintf("%s answered alone from an entry of %d to %d at %d: %s", d.row.Node, d.local.Index, l.e.seen(d.local), d.row.At, says))
	for _, p := range d.parts {
		for _, v := range during(l.versions[p.record], d.local.Index, l.e.seen(d.local)) {
			if v.entry != nil {
				x.Rows = append(x.Rows, v.entry.String())
			}
		}
	}
	l.r.bad(x)
}

// rules: who may answer what.
func (l *locals) rules(d *decision) {
	c := d.call
	takes := c.Op == "take" || c.Op == "takeall"
	denial := takes && !c.Allowed && (c.Op == "takeall" || c.Cost >= 0)
	asks := c.Peek || c.Op == "take" && c.Cost == 0
	if c.Op == "takeall" && !asks {
		asks = !slices.ContainsFunc(c.Parts, func(p trace.Part) bool { return p.Cost != 0 })
	}
	reads := c.Op == "exists" || c.Op == "type" || c.Op == "ttl" || c.Op == "list"
	switch {
	case takes && c.ID != "":
	case d.local.Leading && (denial || takes && asks || reads):
		return
	case !d.local.Leading && denial && !c.Peek && (c.Op == "takeall" || c.Cost > 0) && (c.Retry == model.Never || c.Retry >= followersLeast):
		return
	}
	l.r.bad(d.example(fmt.Sprintf("%s answered %s of %d alone, allowed %v, wait %d ns, leading %v", d.row.Node, c.Op, c.Cost, c.Allowed, c.Retry, d.local.Leading)))
}

// age: what the state v of a record, from which d was answered, misses; nil: nothing that it
// may not.
func (l *locals) age(d *decision, rec model.Record, v version) *Example {
	if d.op == nil {
		return nil
	}
	at := uint64(0)
	if v.entry != nil {
		at = v.entry.Index
	}
	all := l.versions[rec]
	i, _ := slices.BinarySearchFunc(all, at+1, func(v version, i uint64) int { return cmp.Compare(v.entry.Index, i) })
	if i == len(all) {
		return nil // the newest there is
	}
	missed := all[i].entry
	asked := d.op.from()
	if took, ok := l.effect[missed.Index]; ok && asked-took >= 2*l.heartbeat {
		x := d.example(fmt.Sprintf("%s, answered by %s alone from the state before entry %d, which had taken effect %d ns before the client asked; two heartbeat timeouts are %d ns", d.op, d.row.Node, missed.Index, asked-took, 2*l.heartbeat))
		x.Rows = append(x.Rows, missed.String())
		return &x
	}
	for _, f := range l.freed[freedKey{d.row.Node, d.local.life, key{rec.NS, rec.Key}}] {
		if f.op.to() < asked && f.round.entry.Index >= missed.Index {
			x := d.against(f, fmt.Sprintf("%s, answered by %s alone from the state before entry %d, though %s was answered through it before", d.op, d.row.Node, missed.Index, f.op))
			x.Rows = append(x.Rows, missed.String())
			return &x
		}
	}
	return nil
}

// lag counts a denial that no state from v on makes true when the client asked.
func (l *locals) lag(d *decision, v version) {
	if p := d.parts[0]; d.op == nil || p.allowed || p.retry == model.Never {
		return
	}
	now := d.op.from()
	boot, ok := l.e.clock.boot[d.row.Node]
	if !ok || !boot.known() {
		return
	}
	least := int64(math.MinInt64)
	for _, s := range l.e.clock.cluster {
		if s.known() {
			least = max(least, s.lo) // of all terms: for a figure that is good enough
		}
	}
	if least == math.MinInt64 {
		return
	}
	p := d.parts[0]
	at := uint64(0)
	if v.entry != nil {
		at = v.entry.Index
	}
	for _, x := range during(l.versions[p.record], at, math.MaxUint64) {
		if a := p.limit.Peek(x.state, now+boot.lo+least, p.cost); !a.Allowed {
			return
		}
		if x.entry != nil && x.entry.Index > at && l.effect[x.entry.Index] > d.op.to() {
			break
		}
	}
	l.late++
}

// time: `now` is not ahead of the leader's.
func (l *locals) time(d *decision) {
	at, ok := l.e.clock.harness(d.row)
	if !ok {
		return
	}
	since := uint64(0) // term of the newest entry that the node had applied
	for i := d.local.pos; i >= 0 && since == 0; i-- {
		x := &d.local.node.rows[i]
		if x.Kind == trace.Start {
			break
		}
		if x.Kind == trace.Applied {
			since = x.Term
		}
	}
	most := int64(math.MinInt64)
	for term, s := range l.e.clock.cluster {
		boot := l.e.clock.boot[l.e.clock.leader[term]]
		if term < since || !boot.known() || l.e.clock.began[term] > at.hi+boot.hi {
			continue
		}
		if s.hi == anywhere.hi {
			return // of that term nothing is known
		}
		most = max(most, s.hi+at.hi+boot.hi)
	}
	if most != math.MinInt64 && d.row.At > most {
		l.r.bad(d.example(fmt.Sprintf("%s answered alone at %d, and the leader's time was %d at most, %d ns less", d.row.Node, d.row.At, most, d.row.At-most)))
	}
}

// effectTimes is when each entry had been applied by the first node, at the latest.
func (e *evidence) effectTimes() map[uint64]int64 {
	chain := map[uint64]string{}
	for _, x := range e.lineage {
		chain[x.Index] = x.Chain
	}
	first := map[uint64]int64{}
	for _, n := range e.nodes {
		for i := range n.rows {
			x := &n.rows[i]
			if x.Kind != trace.Applied || chain[x.Index] != x.Chain {
				continue
			}
			if at, ok := e.clock.harness(x); ok {
				if old, ok := first[x.Index]; !ok || at.hi < old {
					first[x.Index] = at.hi
				}
			}
		}
	}
	return first
}

// freedKey is a process of a node and a key.
type freedKey struct {
	node string
	life int
	key  key
}

// freedThrough are the decisions that gave capacity back and were acknowledged by a
// process of a node. Which process that was is known if no other began meanwhile.
func (e *evidence) freedThrough() map[freedKey][]*decision {
	began := map[string][]span{} // lives of nodes, harness's time
	for _, n := range e.nodes {
		for i := range n.rows {
			if x := &n.rows[i]; x.Kind == trace.Start {
				at, ok := e.clock.harness(x)
				if !ok {
					at = anywhere
				}
				began[n.node] = append(began[n.node], at)
			}
		}
	}
	freed := map[freedKey][]*decision{}
	for _, d := range e.agreed() {
		if !d.tookEffect() || !d.frees() || d.op == nil || d.op.typ != history.OK {
			continue
		}
		lives := began[d.op.invoke.Node]
		life := 0
		for i, at := range lives {
			if at.lo > d.op.to() {
				break
			}
			life = i + 1
			if at.hi > d.op.from() && i > 0 {
				life = 0 // it began meanwhile, perhaps
				break
			}
		}
		for _, k := range d.keys() {
			if life > 0 {
				freed[freedKey{d.op.invoke.Node, life, k}] = append(freed[freedKey{d.op.invoke.Node, life, k}], d)
			}
		}
	}
	return freed
}
