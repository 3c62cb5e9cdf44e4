package sim

import (
	"slices"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// view is the state after the entry at an index, and what a round has made of it so far.
type view struct {
	o     *oracle
	index uint64
	round *round // nil: nothing
}

// State implements model.View.
func (v view) State(r model.Record) model.State {
	if v.round != nil {
		if s, ok := v.round.after[r]; ok {
			return s
		}
	}
	return v.o.stateAt(r, v.index)
}

// Kinds implements model.View.
func (v view) Kinds(_ uint8, key string) []model.Identity { return v.o.kinds[key] }

// Charge implements model.View.
func (v view) Charge(id model.ID) *model.Charge {
	if v.round != nil {
		if ch, ok := v.round.charges[id]; ok {
			return ch
		}
	}
	all := v.o.ids[id]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].index <= v.index {
			return all[i].charge
		}
	}
	return nil
}

// differs says how a call is not what it must be on a state at now; empty: it is.
func (v view) differs(c *trace.Call, now int64) string {
	want, err := model.Decide(c, now, int64(idTTL), v)
	if err != nil {
		return err.Error()
	}
	return want.Differs(c)
}

// priced is what a call charges a record, or gives back.
type priced struct {
	record model.Record
	limit  model.Limit
	cost   int64
}

// prices are those of a call that has changed something.
func prices(c *trace.Call, given int64) (all []priced) {
	if !c.Allowed || c.Peek || c.Repeated {
		return nil
	}
	add := func(key string, l model.Limit, err error, cost int64) {
		if err == nil && cost != 0 {
			all = append(all, priced{model.Record{NS: c.NS, Key: key, Kind: l.Identity}, l, cost})
		}
	}
	switch {
	case c.Op == "take" && c.ID != "" && c.Cost < 0:
		l, err := model.LimitOf(c)
		add(c.Key, l, err, -given)
	case c.Op == "take":
		l, err := model.LimitOf(c)
		add(c.Key, l, err, c.Cost)
	case c.Op == "takeall":
		for _, p := range c.Parts {
			l, err := model.ParseLimit(p.Limit)
			add(p.Key, l, err, p.Cost)
		}
	}
	return all
}

// aloneAll finds, for each limit of a call that a node has answered alone, an entry of
// those that it names after which it is so: they may be looked at one after the other.
func (o *oracle) aloneAll(c *trace.Call, now int64, from int, upto uint64) bool {
	said := trace.Call{Parts: c.Parts}
	if model.Conclude(&said); said.Allowed != c.Allowed || said.Retry != c.Retry || said.N != c.N {
		return false
	}
	for _, p := range c.Parts {
		l, err := model.ParseLimit(p.Limit)
		if err != nil {
			return false
		}
		got := model.Answer{Allowed: p.Allowed, Remaining: p.Remaining, Retry: p.Retry, Reset: p.Reset, Delay: p.Delay}
		r := model.Record{NS: c.NS, Key: p.Key, Kind: l.Identity}
		found := len(o.applied) == 0 && model.PeekPart(l, model.State{}, now, p.Cost, c.Allowed) == got
		for k := from; k < len(o.applied) && !found && o.applied[k].Index <= upto; k++ {
			found = model.PeekPart(l, o.stateAt(r, o.applied[k].Index), now, p.Cost, c.Allowed) == got
		}
		if !found {
			return false
		}
	}
	return true
}

// turnOver counts the windows of a calendar that end between two changes of a record.
func (o *oracle) turnOver(r model.Record, now int64) {
	if r.Kind.Calendar == (model.Calendar{}) {
		return
	}
	if _, end := r.Kind.Window(now); o.ends[r] != end {
		if o.ends[r] != 0 {
			o.w.count("calendar windows that turned over", 1)
		}
		o.ends[r] = end
	}
}

// note that a key may have such a record.
func (o *oracle) note(r model.Record) {
	if r.Kind.Algorithm != model.Throttle && !slices.Contains(o.kinds[r.Key], r.Kind) {
		o.kinds[r.Key] = append(o.kinds[r.Key], r.Kind)
	}
}
