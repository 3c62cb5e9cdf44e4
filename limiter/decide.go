package limiter

import (
	"bytes"

	"limitd/algo"
	"limitd/fsm"
)

// round is one round's view: the applied state under the round's own write set,
// at the turn's time.
type round struct {
	l      *Limiter
	ws     *writeSet
	tab    *fsm.Table
	now    int64
	offset int64  // of the calendar
	cuts   bool   // effects may cut at the end of a state
	must   bool   // propose even without effects
	ids    int    // charges that are remembered, with those of the round
	next   []byte // room for a decision's new state
	big    []byte // room for a state read from the table
}

// decide answers one call.
func (r *round) decide(c *Call) {
	switch c.Op {
	case Take:
		r.take(c)
	case TakeAll:
		r.takeAll(c)
	case Reset:
		r.reset(c)
	case Flush, FlushAll:
		r.flush(c)
	case List:
		r.list(c)
	default:
		r.read(c)
	}
}

// found is a record as a call of the round finds it.
type found struct {
	rec     *record // of the write set; nil: the round has not changed it
	slot    uint32  // where it would stand there
	state   []byte  // nil: absent, or expired
	expiry  int64   // of state
	inTable bool    // the table holds it
}

// find reads the present state of a record. It is valid until the next find or change.
func (r *round) find(h uint64, ns uint8, key, ident []byte) (f found) {
	f.rec, f.slot = r.ws.find(h, ns, key, ident)
	if f.rec != nil {
		if f.state, f.expiry = f.rec.state(), f.rec.expiry; f.state != nil && f.expiry <= r.now {
			f.state = nil
		}
		return f
	}
	if r.ws.cleared[ns] {
		return f
	}
	state, expiry, ok := r.tab.Get(h, ns, key, ident, r.big[:0])
	if cap(state) > cap(r.big) {
		r.big = state
	}
	f.inTable = ok
	if ok && expiry > r.now {
		f.state, f.expiry = state, expiry
	}
	return f
}

// run runs the algorithm.
func (r *round) run(l *algo.Limit, state []byte, cost int64) (algo.Verdict, algo.Effect) {
	v, e := l.Decide(state, r.now, r.offset, cost, r.next[:0])
	if cap(e.State) > cap(r.next) {
		r.next = e.State
	}
	return v, e
}

// take decides on one record.
func (r *round) take(c *Call) {
	if len(c.ID) > 0 {
		if c.Cost < 0 {
			r.refundID(c)
			return
		}
		if r.repeats(c) {
			return
		}
	}
	c.At = r.now
	ident := c.Limit.Ident()
	f := r.find(c.hash, c.NS, c.Key, ident)
	if c.Peek {
		c.Verdict = peek(&c.Limit, f.state, r.now, r.offset, c.Cost, r.next[:0])
		return
	}
	v, e := r.run(&c.Limit, f.state, c.Cost)
	if e.Op != algo.None {
		if c.Status = r.refuse(c, &f, &e, c.Cost > 0); c.Status != OK {
			return
		}
		r.keep(c.hash, c.NS, c.Key, ident, f, e)
		c.changes = true
	}
	if c.Cost < 0 {
		r.must, c.changes = true, true
	}
	c.Verdict = v
	if len(c.ID) > 0 && e.Op != algo.None {
		r.remember(c, []int64{e.Expiry})
	}
}

// keep puts what a decision changes into the write set.
func (r *round) keep(h uint64, ns uint8, key, ident []byte, f found, e algo.Effect) {
	rec := f.rec
	if rec == nil {
		rec = r.ws.add(f.slot, h, ns, key, ident, f.inTable)
	}
	switch {
	case e.Expiry <= r.now: // it would mean nothing: a full bucket has no record
		rec.remove()
	case e.Op == algo.Replace:
		rec.replace(e.State, e.Expiry)
	case e.Cut > 0 && !r.cuts:
		rec.replace(append(bytes.Clone(f.state[e.Drop:len(f.state)-e.Cut]), e.State...), e.Expiry)
		r.ws.bytes += len(f.state)
	default:
		rec.splice(f.state, e.Drop, e.Cut, e.State, e.Expiry)
		r.ws.bytes += len(e.State)
	}
}

// refuse says why an effect cannot be kept: a new record above the memory bound,
// any charge below the disk's floor, a log with too many entries. A record that some
// member could not read is not written.
func (r *round) refuse(c *Call, f *found, e *algo.Effect, charge bool) Status {
	if e.Op == algo.Splice {
		if e.Cut > 0 && !r.cuts && len(f.state) > wholeState {
			return Upgrading
		}
		if n := (len(f.state) - e.Drop - e.Cut + len(e.State)) / algo.LogEntry; charge && n > r.l.cfg.MaxLogEntries {
			return LogFull
		}
	}
	if !charge {
		return OK
	}
	if len(c.ID) > 0 && r.ids >= r.l.cfg.MaxIDs {
		return IDsFull
	}
	if r.l.cfg.DiskLow != nil && r.l.cfg.DiskLow() {
		return OOM
	}
	if m := r.l.cfg.MaxMemory; f.state == nil && m > 0 && r.tab.Used()+r.ws.added+c.size() > m {
		return OOM
	}
	return OK
}

// wholeState is the largest state, in bytes, that is written again as a whole while not
// all members are known to read an effect that cuts it.
const wholeState = 4096 * algo.LogEntry

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
		r.ws.clear(c.NS + idSpace)
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
