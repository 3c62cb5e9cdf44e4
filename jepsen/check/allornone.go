package check

import (
	"fmt"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// checkAllOrNone: in each entry that took effect, with the calls of its round,
//
//	an effect on a record is that of a call that charged it, gave back to it, reset or flushed it
//	a call that was allowed has an effect on each record that it charges, but for those that a later call of the round gave back to or reset
//	what the parts of one call were charged is in one entry
//
// So no part of a denied call was charged, and of an allowed one each. It needs no model.
// It trusts that a round and its entry have one digest.
func checkAllOrNone(e *evidence, r *result) {
	byRound := map[*round][]*decision{}
	for _, d := range e.agreed() {
		if d.tookEffect() {
			byRound[d.round] = append(byRound[d.round], d)
		}
	}
	for _, x := range e.lineage {
		if x.round == nil {
			continue
		}
		calls := byRound[x.round]
		changed := map[model.Record]bool{}
		for _, f := range x.Effects {
			rec, err := recordOf(f)
			if !touches(f) || err != nil || rec.Kind == model.IDs {
				continue
			}
			r.Checked++
			changed[rec] = true
			if !explained(calls, rec) {
				r.bad(Example{Says: fmt.Sprintf("entry %d changes a record of algorithm %d, and no call of its round that was allowed names it", x.Index, rec.Kind.Algorithm), Key: key{rec.NS, rec.Key}.String(), Node: x.Node, Rows: lines(x.row, x.round.row)})
			}
		}
		for i, d := range calls {
			if !d.charges() {
				continue
			}
			for _, p := range d.parts {
				if p.cost > 0 && !changed[p.record] && !undone(calls[i+1:], p.record) {
					r.bad(d.example(fmt.Sprintf("call %d of the round was allowed, and entry %d does not charge %q under algorithm %d", d.seq, x.Index, p.record.Key, p.record.Kind.Algorithm)))
				}
			}
		}
	}
}

// explained says that a call changes a record.
func explained(calls []*decision, rec model.Record) bool {
	for _, d := range calls {
		if d.charges() || d.call.Op == "take" && d.call.Cost < 0 && !d.call.Repeated {
			for _, p := range d.parts {
				if p.cost != 0 && p.record == rec {
					return true
				}
			}
		}
	}
	return undone(calls, rec)
}

// undone says that a call takes back what was charged of a record.
func undone(calls []*decision, rec model.Record) bool {
	for _, d := range calls {
		switch c := d.call; c.Op {
		case "flushall":
			return true
		case "flush":
			if c.NS == rec.NS {
				return true
			}
		case "reset":
			if c.NS == rec.NS && names(c, rec.Key) {
				return true
			}
		case "take":
			if c.Cost < 0 && len(d.parts) == 1 && d.parts[0].record == rec {
				return true
			}
		}
	}
	return false
}

// names says that a call names a key.
func names(c *trace.Call, k string) bool {
	if c.Key == k {
		return true
	}
	for _, m := range c.More {
		if m == k {
			return true
		}
	}
	return false
}
