package limiter

import (
	"bytes"

	"limitd/fsm"
)

// writeSet is what a round changes: the present value of each record that one of
// its calls changed, found by the key's hash. It is emptied by a generation
// number and keeps its memory, so a round does not allocate.
type writeSet struct {
	slots   []uint64 // generation<<32 | index in records
	gen     uint64
	records []record
	cleared [Namespaces + idSpace]bool // namespaces flushed by this round
	flushed bool                       // some are
	all     bool                       // all are
	added   int64                      // bytes of records that the table does not hold yet
	bytes   int                        // about the size of the effects
	effects []fsm.Effect
}

// smallState is the room for a state inside the record.
const smallState = 24

type record struct {
	hash       uint64
	key, ident []byte // the call's memory: valid until the round proposes
	ns         uint8
	op         fsm.Op // what is proposed for it; 0: nothing
	inTable    bool   // the table holds it
	n          int    // length of the state in small, or -1: it is in big
	drop       int    // splice: bytes of the table's state that go in front
	cut        int    // and at its end
	tail       int    // splice: bytes of big that are new
	expiry     int64
	small      [smallState]byte
	big        []byte
}

func newWriteSet() *writeSet { return &writeSet{slots: make([]uint64, 1<<15)} }

// reset empties the set.
func (w *writeSet) reset() {
	w.gen++
	if w.gen == 1<<32 {
		clear(w.slots)
		w.gen = 1
	}
	for i := range w.records {
		w.records[i].big = nil
	}
	w.records = w.records[:0]
	w.cleared = [Namespaces + idSpace]bool{}
	w.flushed, w.all = false, false
	w.added, w.bytes = 0, 0
}

// find returns the record, or nil and the slot where it would stand.
func (w *writeSet) find(h uint64, ns uint8, key, ident []byte) (*record, uint32) {
	mask := uint32(len(w.slots) - 1)
	for i := uint32(h) & mask; ; i = (i + 1) & mask {
		s := w.slots[i]
		if s>>32 != w.gen {
			return nil, i
		}
		r := &w.records[uint32(s)]
		if r.hash == h && r.ns == ns && bytes.Equal(r.key, key) && bytes.Equal(r.ident, ident) {
			return r, i
		}
	}
}

// add puts an unchanged record at slot (from find) and returns it. The pointer
// is valid until the next add.
func (w *writeSet) add(slot uint32, h uint64, ns uint8, key, ident []byte, inTable bool) *record {
	if len(w.records)*2 >= len(w.slots) {
		w.grow()
		_, slot = w.find(h, ns, key, ident)
	}
	w.slots[slot] = w.gen<<32 | uint64(len(w.records))
	w.records = append(w.records, record{hash: h, ns: ns, key: key, ident: ident, inTable: inTable})
	size := len(key) + len(ident) + 16
	w.bytes += size
	if !inTable {
		w.added += int64(size)
	}
	return &w.records[len(w.records)-1]
}

func (w *writeSet) grow() {
	old := w.records
	w.slots = make([]uint64, 2*len(w.slots))
	mask := uint32(len(w.slots) - 1)
	for n := range old {
		i := uint32(old[n].hash) & mask
		for w.slots[i]>>32 == w.gen {
			i = (i + 1) & mask
		}
		w.slots[i] = w.gen<<32 | uint64(n)
	}
}

// ofKey calls fn for each record of the set on a key.
func (w *writeSet) ofKey(h uint64, ns uint8, key []byte, fn func(*record)) {
	mask := uint32(len(w.slots) - 1)
	for i := uint32(h) & mask; w.slots[i]>>32 == w.gen; i = (i + 1) & mask {
		r := &w.records[uint32(w.slots[i])]
		if r.hash == h && r.ns == ns && bytes.Equal(r.key, key) {
			fn(r)
		}
	}
}

// clear drops all records of a namespace.
func (w *writeSet) clear(ns uint8) {
	w.cleared[ns], w.flushed = true, true
	for i := range w.records {
		if r := &w.records[i]; r.ns == ns {
			r.remove()
			r.op, r.inTable = 0, false // the clear effect does it
		}
	}
}

// state is the record's present state, nil if it holds none.
func (r *record) state() []byte {
	switch {
	case r.op != fsm.OpReplace && r.op != fsm.OpSplice:
		return nil
	case r.n >= 0:
		return r.small[:r.n]
	}
	return r.big
}

// replace sets the state.
func (r *record) replace(state []byte, expiry int64) {
	r.op, r.expiry = fsm.OpReplace, expiry
	if len(state) <= smallState {
		r.n = copy(r.small[:], state)
		return
	}
	r.n = -1
	r.big = append(r.big[:0], state...)
}

// splice drops bytes in front of the state, cuts some at its end and appends tail.
// before is the state that the decision was made on; splices of one round add up to
// one.
func (r *record) splice(before []byte, drop, cut int, tail []byte, expiry int64) {
	if len(before) == 0 && r.op != 0 { // what the round made of it has expired, or is gone
		r.op = fsm.OpReplace
	}
	fresh := r.op == 0
	after := append(append(make([]byte, 0, len(before)-drop-cut+len(tail)), before[drop:len(before)-cut]...), tail...)
	switch {
	case fresh && len(before) > 0: // first change of a record that the table holds
		r.op, r.drop, r.cut, r.tail = fsm.OpSplice, drop, cut, len(tail)
	case r.op == fsm.OpSplice:
		old := len(before) - r.tail // of the table's bytes, still there
		left := r.tail              // of those that the round appended
		if cut <= left {
			left -= cut
		} else {
			r.cut, old, left = r.cut+cut-left, old-(cut-left), 0
		}
		if drop <= old {
			r.drop, r.tail = r.drop+drop, left+len(tail)
		} else {
			r.drop, r.tail = r.drop+old, len(after)
		}
	default:
		r.op = fsm.OpReplace
	}
	r.n, r.big, r.expiry = -1, after, expiry
}

// remove makes the record absent.
func (r *record) remove() { r.op, r.n, r.big, r.expiry = fsm.OpDelete, 0, nil, 0 }

// effectsOf lists what is proposed, clears first. The slices alias the set.
func (w *writeSet) effectsOf() []fsm.Effect {
	e := w.effects[:0]
	switch {
	case w.all:
		e = append(e, fsm.Effect{Op: fsm.OpClearAll})
	case w.flushed:
		for ns, c := range w.cleared {
			if c {
				e = append(e, fsm.Effect{Op: fsm.OpClear, NS: uint8(ns)})
			}
		}
	}
	for i := range w.records {
		r := &w.records[i]
		x := fsm.Effect{Op: r.op, NS: r.ns, Key: r.key, Ident: r.ident, Expiry: r.expiry}
		switch r.op {
		case 0:
			continue
		case fsm.OpDelete:
			if !r.inTable {
				continue
			}
		case fsm.OpSplice:
			x.Drop, x.Cut, x.State = r.drop, r.cut, r.big[len(r.big)-r.tail:]
		default:
			x.State = r.state()
		}
		e = append(e, x)
	}
	w.effects = e
	return e
}
