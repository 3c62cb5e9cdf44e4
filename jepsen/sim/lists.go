package sim

import (
	"encoding/hex"
	"slices"

	"limitd/jepsen/check/model"
	"limitd/limiter"
	"limitd/trace"
)

// listOf is what a client is told of a key's records.
func listOf(call *limiter.Call) (all []model.Listed) {
	for i := range call.Parts {
		p := &call.Parts[i]
		kind, err := model.ReadIdentity(hex.EncodeToString(p.Ident))
		if err != nil {
			kind = model.IDs // of no key
		}
		all = append(all, model.Listed{Kind: kind, Used: p.N, Left: p.Verdict.ResetAfter})
	}
	return all
}

// listedSo says whether a client is told what the model lists for the round.
func listedSo(c *trace.Call, want []model.Listed) func([]model.Listed) bool {
	if c.Op != "list" {
		return nil
	}
	return func(told []model.Listed) bool { return slices.Equal(told, want) }
}

// listedAlone says whether a client is told what a leader can have read alone: each record
// as it was after some entry of those that its row names.
func (o *oracle) listedAlone(c *trace.Call, r *trace.Row) func([]model.Listed) bool {
	if c.Op != "list" {
		return nil
	}
	ns, name, now, index, upto := c.NS, c.Key, r.At, r.Index, r.Upto+1
	return func(told []model.Listed) bool {
		return model.ListedOf(told, o.kinds[name], now, 1, func(kind model.Identity) []model.State {
			rec := model.Record{NS: ns, Key: name, Kind: kind}
			states := []model.State{o.stateAt(rec, index)}
			if h := o.records[rec]; h != nil {
				for _, v := range h.versions {
					if v.index > index && v.index <= upto {
						states = append(states, v.state)
					}
				}
			}
			return states
		})
	}
}
