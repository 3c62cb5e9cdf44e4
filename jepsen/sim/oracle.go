package sim

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// oracle judges what nodes decide and apply at the moment at which they do, and what
// clients are told when they hear it. It knows all nodes at once, and true time.
type oracle struct {
	w  *world
	mu sync.Mutex

	applied []entry // every entry that some node has applied or voided, by index
	at      map[uint64]int
	records map[model.Record]*history
	kinds   map[string][]model.Identity // of the records that a key has had
	ids     map[model.ID][]charged
	rounds  map[string]*round // by digest of the entry
	tags    map[uint64][]decision
	ends    map[model.Record]int64 // of the newest calendar window that was charged
	refused map[uint64]string      // tags of calls that were certainly not charged, and what they were told
	doubt   map[uint64]bool        // tags of calls of which nobody knew
	leaders map[uint64]string      // by term
	ahead   int64                  // cluster time less true time, of the newest batch
	most    int64                  // and of the first one: no batch is further ahead
	started bool                   // ahead is known
}

// entry is an entry of the log as the first node that applied it told.
type entry struct {
	trace.Row
	seen time.Time
}

// round is a leader's, before it is known whether it takes effect.
type round struct {
	trace.Row
	decided time.Time
	after   map[model.Record]model.State // of those that it changes
	charges map[model.ID]*model.Charge
	changes []bool  // per call
	given   []int64 // per call: units that a refund of an ID gave back
	effect  bool
	outcome string
}

// decision is what a node has found for a call: in a round, or alone.
type decision struct {
	call  trace.Call
	round *round // nil: alone
	i     int
	list  func([]model.Listed) bool // says whether a list can be told; nil: it is no list
}

// charged is what was charged under an ID, by the index of the entry that did it.
type charged struct {
	index  uint64
	charge *model.Charge
}

// history of a record's state, by the index of the entry that made it.
type history struct {
	versions []version
	shadow   model.State // of the same calls in true time: it is never fuller
}

type version struct {
	index uint64
	state model.State
}

func newOracle(w *world) *oracle {
	return &oracle{
		w: w, at: map[uint64]int{}, ends: map[model.Record]int64{}, records: map[model.Record]*history{}, kinds: map[string][]model.Identity{}, ids: map[model.ID][]charged{}, rounds: map[string]*round{}, tags: map[uint64][]decision{},
		refused: map[uint64]string{}, doubt: map[uint64]bool{}, leaders: map[uint64]string{},
	}
}

// row takes in what a process tells.
func (o *oracle) row(p *process, r *trace.Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch r.Kind {
	case trace.Round:
		o.decided(p, r)
	case trace.Outcome:
		o.cameOut(p, r)
	case trace.Local:
		o.alone(p, r)
	case trace.Applied:
		o.apply(p, r)
	case trace.Restored:
		o.restored(p, r)
	}
}

func (o *oracle) fail(format string, args ...any) { o.w.fail(format, args...) }

// decided replays a round on the state that it says it was decided on.
func (o *oracle) decided(p *process, r *trace.Row) {
	if who, ok := o.leaders[r.Term]; ok && who != p.name {
		o.fail("two leaders in term %d: %s and %s", r.Term, who, p.name)
	}
	o.leaders[r.Term] = p.name
	x := &round{Row: *r, decided: time.Now(), after: map[model.Record]model.State{}, charges: map[model.ID]*model.Charge{}, changes: make([]bool, len(r.Calls)), given: make([]int64, len(r.Calls))}
	if k, ok := o.upTo(r.Base); r.Base > 0 && (!ok || o.applied[k].Index != r.Base) {
		o.fail("%s decides on entry %d, which nobody has applied", p.name, r.Base)
		return
	} else if ok && r.At < o.applied[k].T {
		o.fail("%s decides at %d, before the time %d of the state that it decides on", p.name, r.At, o.applied[k].T)
	}
	v := view{o, r.Base, x}
	for i := range r.Calls {
		c := &r.Calls[i]
		want, err := model.Decide(c, r.At, int64(idTTL), v)
		if why := want.Differs(c); err != nil || why != "" && (c.Status == "ok" || c.Status == "err" && !model.MayBeRefused(c)) {
			o.fail("%s answers in a round at %d on entry %d: %s, %v\n\tis   %+v\n\twant %+v", p.name, r.At, r.Base, why, err, *c, want.Call)
		}
		if c.Status == "ok" {
			maps.Copy(x.after, want.Change.States)
			maps.Copy(x.charges, want.Change.Charges)
			x.changes[i], x.given[i] = len(want.Change.States) > 0, want.Given
			for r := range want.Change.States {
				o.note(r)
				o.turnOver(r, x.At)
			}
			if c.Op == "list" && len(want.List) > 0 {
				o.w.count("lists of records", 1)
			}
		}
		if c.Tag != 0 {
			o.tags[c.Tag] = append(o.tags[c.Tag], decision{*c, x, i, listedSo(c, want.List)})
		}
		o.w.count("decisions", 1)
	}
	if r.Digest == "" {
		x.effect = true
		return
	}
	o.rounds[r.Digest] = x
}

// cameOut notes what the leader believes became of its round.
func (o *oracle) cameOut(p *process, r *trace.Row) {
	if r.Outcome != "refused" && r.Outcome != "void" {
		return
	}
	for _, x := range o.rounds {
		if x.Term == r.Term && x.Round == r.Round {
			if x.outcome = r.Outcome; x.effect {
				o.fail("%s takes the round %d of term %d for %s; it took effect", p.name, r.Round, r.Term, r.Outcome)
			}
		}
	}
}

// apply compares an entry with what the others applied, or is the first to see it.
func (o *oracle) apply(p *process, r *trace.Row) {
	if k, ok := o.at[r.Index]; ok {
		if was := &o.applied[k]; !sameEntry(&was.Row, r) {
			o.fail("%s applies another entry %d than the others:\n\tis   %s\n\twant %s", p.name, r.Index, brief(r), brief(&was.Row))
		}
		return
	}
	var before trace.Row
	if n := len(o.applied); n > 0 {
		before = o.applied[n-1].Row
	}
	if r.Index < before.Index {
		o.fail("%s applies entry %d, which those that are at %d have not applied", p.name, r.Index, before.Index)
		return
	}
	o.at[r.Index] = len(o.applied)
	o.applied = append(o.applied, entry{*r, time.Now()})
	o.w.count("entries", 1)
	if r.Outcome != "applied" {
		o.w.count("void entries", 1)
		if r.T != before.T || r.Last != before.Last || r.Chain != before.Chain {
			o.fail("%s: entry %d is void and changes the state: %s", p.name, r.Index, brief(r))
		}
		return
	}
	if r.Base != before.Last {
		o.fail("%s: entry %d takes effect; it was decided on entry %d, and the last before it is %d", p.name, r.Index, r.Base, before.Last)
	}
	if want := max(before.T, r.At); r.T != want {
		o.fail("%s: cluster time is %d after entry %d, want %d", p.name, r.T, r.Index, want)
	}
	if x := o.rounds[r.Digest]; x != nil {
		o.takeEffect(p, r, x)
	}
}

// takeEffect is the only way in which the model's state changes.
func (o *oracle) takeEffect(p *process, r *trace.Row, x *round) {
	if x.effect {
		o.fail("%s: entry %d takes effect a second time", p.name, r.Index)
	}
	if x.outcome != "" {
		o.fail("%s: entry %d takes effect; its leader took it for %s", p.name, r.Index, x.outcome)
	}
	x.effect = true
	o.compareTime(p, x)
	for i := range x.Calls {
		o.inTrueTime(&x.Calls[i], x.given[i], x.decided.UnixNano(), r.Index)
		if tag := x.Calls[i].Tag; x.changes[i] && o.refused[tag] != "" {
			o.fail("call %d took effect with entry %d; its client was told: %s", tag, r.Index, o.refused[tag])
		}
	}
	for rec, s := range x.after {
		h := o.record(rec)
		h.versions = append(h.versions, version{r.Index, s})
	}
	for id, ch := range x.charges {
		if n := len(o.ids[id]); n > 0 && o.ids[id][n-1].charge.At != ch.At && ch.At < o.ids[id][n-1].charge.Over {
			o.fail("%s: entry %d charges the ID %s again, at %d; it was charged at %d", p.name, r.Index, id.Token, ch.At, o.ids[id][n-1].charge.At)
		}
		o.ids[id] = append(o.ids[id], charged{r.Index, ch})
	}
}

// compareTime compares cluster time with true time. A failover loses what a message took;
// a later one may find that again, if the node has heard of an earlier leader in time and
// not of the one after it. It never finds more.
func (o *oracle) compareTime(p *process, x *round) {
	ahead := x.At - x.decided.UnixNano()
	switch {
	case !o.started, ahead > o.most && o.w.rebooted():
		o.most = ahead
	case ahead > o.most:
		o.fail("cluster time gains %s on true time in term %d of %s", time.Duration(ahead-o.most), x.Term, p.name)
	}
	if o.started && ahead > o.ahead { // a bucket has got that time in no time
		o.w.count("cluster time found again", 1)
		for _, h := range o.records {
			h.shadow = model.State{}
		}
	}
	o.ahead, o.started = ahead, true
}

// inTrueTime charges the buckets of a call in true time, too. While cluster time does not
// gain on it, true time admits what cluster time does. (Windows begin at other moments.)
func (o *oracle) inTrueTime(c *trace.Call, given, now int64, index uint64) {
	if c.Op == "reset" {
		for _, key := range append([]string{c.Key}, c.More...) {
			for rec, h := range o.records {
				if rec.NS == c.NS && rec.Key == key {
					h.shadow = model.State{}
				}
			}
		}
	}
	for _, p := range prices(c, given) {
		if p.limit.Interval == 0 {
			continue
		}
		h := o.record(p.record)
		a, s := p.limit.Take(h.shadow, now, p.cost)
		if !a.Allowed {
			o.fail("entry %d admits %d of key %s more than a bucket in true time has", index, p.cost, p.record.Key)
		}
		h.shadow = s
	}
}

// restored compares a state that came from a snapshot with the entry that it is after.
func (o *oracle) restored(p *process, r *trace.Row) {
	if p.loading.Load() {
		o.w.count("states loaded at a start", 1)
	} else {
		o.w.count("snapshots installed", 1)
	}
	k, ok := o.upTo(r.Index)
	if !ok {
		if r.Last != 0 {
			o.fail("%s loads a state at %d, which nobody has applied", p.name, r.Index)
		}
		return
	}
	if e := &o.applied[k]; r.Chain != e.Chain || r.T != e.T || r.Last != e.Last {
		o.fail("%s loads a state that is not the others' at its index:\n\tis   %s\n\twant %s", p.name, brief(r), brief(&e.Row))
	}
}

// upTo finds the newest entry up to an index.
func (o *oracle) upTo(index uint64) (int, bool) {
	lo, hi := 0, len(o.applied)
	for lo < hi {
		if mid := (lo + hi) / 2; o.applied[mid].Index <= index {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1, lo > 0
}

func (o *oracle) record(r model.Record) *history {
	h := o.records[r]
	if h == nil {
		h = &history{}
		o.records[r] = h
	}
	return h
}

// stateAt is a record's state after the entry at index.
func (o *oracle) stateAt(r model.Record, index uint64) model.State {
	if h := o.records[r]; h != nil {
		for i := len(h.versions) - 1; i >= 0; i-- {
			if h.versions[i].index <= index {
				return h.versions[i].state
			}
		}
	}
	return model.State{}
}

func sameEntry(a, b *trace.Row) bool {
	return a.Term == b.Term && a.Base == b.Base && a.At == b.At && a.Digest == b.Digest && a.Outcome == b.Outcome &&
		a.T == b.T && a.Last == b.Last && a.Chain == b.Chain
}

func brief(r *trace.Row) string {
	return fmt.Sprintf("index %d term %d base %d at %d: %s, last %d, T %d, chain %s, digest %s", r.Index, r.Term, r.Base, r.At, r.Outcome, r.Last, r.T, r.Chain, r.Digest)
}
