package check

import (
	"fmt"

	"limitd/jepsen/check/model"
)

// checkIDs counts the effects of each ID over the whole history. For two charges under
// one ID that took effect, at times s <= t, with nothing flushed in between:
//
//	t >= s + id_ttl
//
// For two refunds that name the ID and one limit's record, behind one charge, and that gave
// something back: there are none. A refund gave something if its entry has an effect on
// what is remembered of the ID. And a client that was told that its call under the ID was
// admitted: there is a charge under it, of that call.
//
// It counts effects, and needs neither a model nor the answers. It trusts the traces for
// order and times.
func checkIDs(e *evidence, r *result) {
	flushed := map[uint8]int{} // when a namespace was flushed, in order
	ids := map[model.ID]*used{}
	charged, repeated := int64(0), int64(0)
	for _, d := range e.agreed() {
		c := d.call
		switch c.Op {
		case "flush":
			flushed[c.NS] = d.order + 1
		case "flushall":
			for ns := range uint8(idSpace) {
				flushed[ns] = d.order + 1
			}
		}
		if c.ID == "" {
			continue
		}
		r.Checked++
		if c.Repeated {
			repeated++
		}
		id := model.ID{NS: c.NS, Token: c.ID}
		u := ids[id]
		switch {
		case !d.tookEffect() || c.Repeated:
		case d.charges():
			charged++
			if u != nil && u.charge.order >= flushed[c.NS] && d.row.At < u.charge.row.At+e.idTTL() {
				r.bad(d.against(u.charge, fmt.Sprintf("the ID %q was charged at %d, and again at %d, %d ns later; it is remembered for %d ns", c.ID, u.charge.row.At, d.row.At, d.row.At-u.charge.row.At, e.idTTL())))
			}
			ids[id] = &used{charge: d, refunds: map[model.Record]*decision{}}
		case c.Cost < 0 && u != nil && d.wroteID():
			for _, p := range d.parts {
				if before := u.refunds[p.record]; before != nil {
					r.bad(d.against(before, fmt.Sprintf("what was charged under the ID %q was given back twice", c.ID)))
				}
				u.refunds[p.record] = d
			}
		}
	}
	for _, o := range e.ops {
		if o.id == "" || !o.admitted() || o.invoke.Tag == 0 {
			continue
		}
		r.Checked++
		if e.effectOf(o) == nil {
			r.bad(Example{Says: fmt.Sprintf("%s; but nothing was charged under that ID", o), Key: o.keyName(), Node: o.invoke.Node, Events: o.events(), Rows: e.rowsOf(o)})
		}
	}
	r.figure("charged", charged)
	r.figure("repeated", repeated)
}

// used is what was done under an ID since it was charged.
type used struct {
	charge  *decision
	refunds map[model.Record]*decision
}

// wroteID says that the decision's entry has an effect on what is remembered of its ID.
func (d *decision) wroteID() bool {
	for _, f := range d.round.entry.Effects {
		if f.Op == "replace" && f.Key == d.call.ID && f.NS == d.call.NS+idSpace {
			return true
		}
	}
	return false
}
