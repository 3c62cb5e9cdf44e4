package check

import (
	"fmt"
	"slices"

	"limitd/jepsen/check/model"
)

// readList reads a reply of RL.LIST: for each record algorithm, period, used, expires_in_ms.
// odd says what makes it none.
func readList(reply any) (all []model.Listed, odd string) {
	records, ok := reply.([]any)
	if !ok {
		return nil, "not an array"
	}
	for _, r := range records {
		four, _ := r.([]any)
		if len(four) != 4 {
			return nil, fmt.Sprintf("%v is no algorithm, period, used and time", r)
		}
		algorithm, ok1 := four[0].(string)
		period, ok2 := four[1].(string)
		used, ok3 := four[2].(int64)
		left, ok4 := four[3].(int64)
		kind, err := model.KindOf(algorithm, period)
		if !ok1 || !ok2 || !ok3 || !ok4 || err != nil {
			return nil, fmt.Sprintf("%v is no record", r)
		}
		all = append(all, model.Listed{Kind: kind, Used: used, Left: left})
	}
	return all, ""
}

// inMS is a list with its times as clients are told them.
func inMS(all []model.Listed) []model.Listed {
	all = slices.Clone(all)
	for i := range all {
		all[i].Left = wait(all[i].Left)
	}
	return all
}

// explains says that an operation was told what the decision about it says. What a list
// says is not traced, so it is what the model says: in a round of the state at that place,
// of a node alone for each record of some state that it can have been read in.
func (w *witness) explains(d *decision, o *op) bool {
	switch {
	case o.verb != list:
		return slices.Equal(d.answer(o.verb), o.reply)
	case d.call.Op != "list":
		return false
	case d.local == nil:
		return slices.Equal(inMS(d.listed), o.listed)
	}
	all := w.e.versions()
	k := key{d.call.NS, d.call.Key}
	return model.ListedOf(o.listed, all.kinds[k], d.row.At, 1e6, func(kind model.Identity) (states []model.State) {
		for _, v := range during(all.of[model.Record{NS: k.ns, Key: k.name, Kind: kind}], d.local.Index, w.e.seen(d.local)) {
			states = append(states, v.state)
		}
		return states
	})
}
