package sim

import (
	"fmt"
	"slices"
	"time"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// alone judges what a node has answered without agreement: it is what the state after
// one of the entries that it names says, and that state is not too old.
func (o *oracle) alone(p *process, r *trace.Row) {
	now := time.Now()
	if o.started && r.At-now.UnixNano() > o.most && !o.w.rebooted() {
		o.fail("%s answers alone at %d, ahead of cluster time", p.name, r.At)
	}
	from, ok := o.upTo(r.Index)
	if !ok {
		from = 0
	}
	oldest := o.mustKnow(now)
	for i := range r.Calls {
		c := &r.Calls[i]
		found := c.Op == "takeall" && o.aloneAll(c, r.At, from, r.Upto+1)
		for k := from; c.Op != "takeall" && k < len(o.applied) && !found && o.applied[k].Index <= r.Upto+1; k++ {
			found = view{o, o.applied[k].Index, nil}.differs(c, r.At) == ""
		}
		if c.ID != "" {
			o.fail("%s answers a call with an ID alone: %+v", p.name, *c)
		}
		if !found {
			o.fail("%s answers alone at %d on entries %d to %d what none of them says:\n\t%+v", p.name, r.At, r.Index, r.Upto+1, *c)
		}
		if r.Upto+1 < oldest {
			o.staleDenial(p, r, c, oldest)
		}
		o.tags[c.Tag] = append(o.tags[c.Tag], decision{call: *c, list: o.listedAlone(c, r)})
		o.w.count("answered alone", 1)
	}
}

// mustKnow is the newest entry that every node in touch has applied: the newest that
// somebody had applied two heartbeat timeouts ago.
func (o *oracle) mustKnow(now time.Time) uint64 {
	limit := now.Add(-2 * o.w.settings.Heartbeat)
	for k := len(o.applied) - 1; k >= 0; k-- {
		if o.applied[k].seen.Before(limit) {
			return o.applied[k].Index
		}
	}
	return 0
}

// staleDenial judges a denial on a state that is older than it may be: it holds if a
// newer state denies as well.
func (o *oracle) staleDenial(p *process, r *trace.Row, c *trace.Call, oldest uint64) {
	for k, ok := o.upTo(oldest); ok && k < len(o.applied); k++ {
		want, err := model.Decide(c, r.At, int64(idTTL), view{o, o.applied[k].Index, nil})
		if err == nil && want.Call.Allowed == c.Allowed {
			return
		}
	}
	o.fail("%s answers alone from entry %d, though entry %d is older than two heartbeat timeouts: %+v", p.name, r.Upto, oldest, *c)
}

// ask is a call of a client, and its answer.
type ask struct {
	tag    uint64
	status string // ok, or the first word of the error, or "info": nobody knows
	text   string
	answer trace.Call
	list   []model.Listed
}

// told compares what a client is told with what was decided.
func (o *oracle) told(a *ask) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch a.status {
	case "ok":
		o.toldOK(a)
	case "info", "indoubt":
		o.doubt[a.tag] = true
		o.w.count("in doubt", 1)
	default:
		o.w.count("refused", 1)
		o.refused[a.tag] = a.text
		for _, d := range o.tags[a.tag] {
			if d.round != nil && d.round.effect && d.round.changes[d.i] {
				o.fail("call %d took effect; its client is told: %s", a.tag, a.text)
			}
		}
	}
}

func (o *oracle) toldOK(a *ask) {
	o.w.count("answered", 1)
	for _, d := range o.tags[a.tag] {
		if d.call.Status != "ok" || !sameAnswer(&d.call, &a.answer) || d.list != nil && !d.list(a.list) {
			continue
		}
		if d.round == nil || d.round.effect {
			return
		}
	}
	o.fail("call %d is answered what nobody has agreed on: %+v %v\n\tdecided: %s", a.tag, a.answer, a.list, o.decisions(a.tag))
}

func sameAnswer(a, b *trace.Call) bool {
	parts := slices.EqualFunc(a.Parts, b.Parts, func(p, q trace.Part) bool {
		p.Key, p.Limit, p.Cost = q.Key, q.Limit, q.Cost // what was asked
		return p == q
	})
	return parts && a.Allowed == b.Allowed && a.Remaining == b.Remaining && a.Retry == b.Retry && a.Reset == b.Reset && a.Delay == b.Delay && a.N == b.N
}

// decisions on a call, for a message.
func (o *oracle) decisions(tag uint64) string {
	var s string
	for _, d := range o.tags[tag] {
		s += fmt.Sprintf("\n\t%+v", d.call)
		if d.round != nil {
			s += fmt.Sprintf(" in round %d of term %d, in effect %v, outcome %q", d.round.Round, d.round.Term, d.round.effect, d.round.outcome)
		}
	}
	return s
}

// count adds up what is known at the end.
func (o *oracle) count() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for tag := range o.doubt {
		for _, d := range o.tags[tag] {
			if d.round != nil && d.round.effect && d.round.changes[d.i] {
				o.w.count("in doubt, took effect", 1)
				break
			}
		}
	}
	o.w.count("terms with decisions", len(o.leaders))
}
