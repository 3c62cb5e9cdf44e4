package limiter

import (
	"bytes"
	"slices"

	"limitd/algo"
	"limitd/fsm"
)

// list makes the parts of a List of the records of a key, as the round sees them.
func (r *round) list(c *Call) {
	c.Parts = nil
	if !r.ws.cleared[c.NS] {
		r.tab.Records(c.hash, c.NS, c.Key, func(x fsm.Record) {
			if rec, _ := r.ws.find(c.hash, c.NS, c.Key, x.Ident); rec == nil {
				c.listed(x, r.now, r.offset)
			}
		})
	}
	r.ws.ofKey(c.hash, c.NS, c.Key, func(rec *record) {
		if state := rec.state(); state != nil {
			c.listed(fsm.Record{Ident: rec.ident, State: state, Expiry: rec.expiry}, r.now, r.offset)
		}
	})
	c.sortParts()
}

// list is the same from the applied state.
func (l *Limiter) list(c *Call, tab *fsm.Table, now int64) {
	c.Parts = nil
	offset := l.f.State().Offset
	tab.Records(tab.Hash(c.NS, c.Key), c.NS, c.Key, func(x fsm.Record) { c.listed(x, now, offset) })
	c.sortParts()
}

func (c *Call) listed(x fsm.Record, now, offset int64) {
	if x.Expiry <= now {
		return
	}
	p := Part{Ident: bytes.Clone(x.Ident), N: algo.Used(x.Ident, x.State, now, offset)}
	p.Verdict.ResetAfter = x.Expiry - now
	c.Parts = append(c.Parts, p)
}

// sortParts makes the order that of the identities, the same on every node.
func (c *Call) sortParts() {
	slices.SortFunc(c.Parts, func(a, b Part) int { return bytes.Compare(a.Ident, b.Ident) })
}
