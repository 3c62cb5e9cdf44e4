package check

import (
	"slices"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// defaultIDTTL is for how long the nodes of a run that does not say so remember an ID.
const defaultIDTTL = int64(60e9)

// idTTL is limits.id_ttl of the nodes, ns.
func (e *evidence) idTTL() int64 {
	if e.run.IDTTLNS > 0 {
		return e.run.IDTTLNS
	}
	return defaultIDTTL
}

// kinds are the identities of the records that keys have had, CL.THROTTLE's excepted.
type kinds map[key][]model.Identity

func (k kinds) note(r model.Record) {
	at := key{r.NS, r.Key}
	if r.Kind.Algorithm != model.Throttle && !slices.Contains(k[at], r.Kind) {
		k[at] = append(k[at], r.Kind)
	}
}

// replay is the state that calls make, by the model. It is a [model.View].
type replay struct {
	states  map[model.Record]model.State
	kinds   kinds
	charges map[model.ID]*model.Charge
}

func newReplay() replay {
	return replay{map[model.Record]model.State{}, kinds{}, map[model.ID]*model.Charge{}}
}

func (w *replay) State(r model.Record) model.State             { return w.states[r] }
func (w *replay) Kinds(ns uint8, name string) []model.Identity { return w.kinds[key{ns, name}] }
func (w *replay) Charge(id model.ID) *model.Charge             { return w.charges[id] }

// take in what a call leaves behind, and tell which records that concerns.
func (w *replay) take(c *trace.Call, change model.Change, touched func(model.Record)) {
	for r, s := range change.States {
		w.states[r] = s
		w.kinds.note(r)
		touched(r)
	}
	for id, ch := range change.Charges {
		w.charges[id] = ch
		touched(recordOfID(id))
	}
	if c.Op != "flush" && c.Op != "flushall" {
		return
	}
	for r := range w.states {
		if c.Op == "flushall" || r.NS == c.NS {
			delete(w.states, r)
			touched(r)
		}
	}
	for id := range w.charges {
		if c.Op == "flushall" || id.NS == c.NS {
			delete(w.charges, id)
			touched(recordOfID(id))
		}
	}
}

// recordOfID is the record of what is remembered of an ID.
func recordOfID(id model.ID) model.Record {
	return model.Record{NS: id.NS + idSpace, Key: id.Token, Kind: model.IDs}
}

func idOf(r model.Record) model.ID { return model.ID{NS: r.NS - idSpace, Token: r.Key} }

// alone is a view of single records, for what a node answered by itself.
type alone struct {
	state func(model.Record) model.State
	kinds kinds
}

func (a alone) State(r model.Record) model.State             { return a.state(r) }
func (a alone) Kinds(ns uint8, name string) []model.Identity { return a.kinds[key{ns, name}] }
func (a alone) Charge(model.ID) *model.Charge                { return nil }
