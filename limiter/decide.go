package limiter

import (
	"limitd/algo"
	"limitd/fsm"
)

// round is one round's view: the applied state under the round's own write set,
// at the turn's time.
type round struct {
	l    *Limiter
	ws   *writeSet
	tab  *fsm.Table
	now  int64
	must bool   // propose even without effects
	next []byte // room for a decision's new state
	big  []byte // room for a state read from the table
}

// decide answers one call.
func (r *round) decide(c *Call) {
	switch c.Op {
	case Take:
		r.take(c)
	case Reset:
		r.reset(c)
	case Flush, FlushAll:
		r.flush(c)
	default:
		r.read(c)
	}
}

// take runs the algorithm on the record's present state.
func (r *round) take(c *Call) {
	ident := c.Limit.Ident()
	rec, slot := r.ws.find(c.hash, c.NS, c.Key, ident)
	var state []byte
	inTable := false
	if rec != nil {
		if state = rec.state(); state != nil && rec.expiry <= r.now {
			state = nil
		}
	} else if !r.ws.cleared[c.NS] {
		var expiry int64
		state, expiry, inTable = r.tab.Get(c.hash, c.NS, c.Key, ident, r.big[:0])
		if cap(state) > cap(r.big) {
			r.big = state
		}
		if inTable && expiry <= r.now {
			state = nil
		}
	}
	v, e := c.Limit.Decide(state, r.now, 0, c.Cost, r.next[:0])
	if cap(e.State) > cap(r.next) {
		r.next = e.State
	}
	if e.Op != algo.None {
		if c.Cost > 0 && r.refuse(c, state == nil) {
			c.Status = OOM
			return
		}
		if rec == nil {
			rec = r.ws.add(slot, c.hash, c.NS, c.Key, ident, inTable)
		}
		switch {
		case e.Expiry <= r.now: // it would mean nothing: a full bucket has no record
			rec.remove()
		case e.Op == algo.Replace:
			rec.replace(e.State, e.Expiry)
		default:
			rec.splice(state, e.Drop, e.State, e.Expiry)
			r.ws.bytes += len(e.State)
		}
		c.changes = true
	}
	if c.Cost < 0 {
		r.must, c.changes = true, true
	}
	c.Verdict = v
}

// refuse says that a charge cannot be kept: a new record above the memory bound,
// or any below the disk's floor.
func (r *round) refuse(c *Call, newRecord bool) bool {
	if r.l.cfg.DiskLow != nil && r.l.cfg.DiskLow() {
		return true
	}
	m := r.l.cfg.MaxMemory
	return newRecord && m > 0 && r.tab.Used()+r.ws.added+c.size() > m
}

// reset removes all records of the keys.
func (r *round) reset(c *Call) {
	c.N = 0
	c.keys(func(key []byte) {
		h := r.tab.Hash(c.NS, key)
		if r.expiry(h, c.NS, key) > r.now {
			c.N++
		}
		if !r.ws.cleared[c.NS] {
			var idents [][]byte
			r.tab.Records(h, c.NS, key, func(x fsm.Record) { idents = append(idents, append([]byte(nil), x.Ident...)) })
			for _, id := range idents {
				if rec, slot := r.ws.find(h, c.NS, key, id); rec == nil {
					r.ws.add(slot, h, c.NS, key, id, true).remove()
				}
			}
		}
		r.ws.ofKey(h, c.NS, key, (*record).remove)
	})
	r.must, c.changes = true, true
}

// flush removes a namespace, or all.
func (r *round) flush(c *Call) {
	if c.Op == FlushAll {
		for ns := range r.ws.cleared {
			r.ws.clear(uint8(ns))
		}
		r.ws.all = true
	} else {
		r.ws.clear(c.NS)
	}
	r.must, c.changes = true, true
}

// read answers Exists, Type and TTL.
func (r *round) read(c *Call) {
	c.N = 0
	longest := int64(0)
	c.keys(func(key []byte) {
		if e := r.expiry(r.tab.Hash(c.NS, key), c.NS, key); e > r.now {
			c.N++
			longest = max(longest, e-r.now)
		}
	})
	if c.Op == TTL {
		c.N = ttl(longest)
	}
}

// expiry is the latest expiry of a key's records, 0 if it holds none.
func (r *round) expiry(h uint64, ns uint8, key []byte) int64 {
	latest := int64(0)
	if !r.ws.cleared[ns] {
		r.tab.Records(h, ns, key, func(x fsm.Record) {
			if rec, _ := r.ws.find(h, ns, key, x.Ident); rec == nil {
				latest = max(latest, x.Expiry)
			}
		})
	}
	r.ws.ofKey(h, ns, key, func(rec *record) {
		if rec.state() != nil {
			latest = max(latest, rec.expiry)
		}
	})
	return latest
}
