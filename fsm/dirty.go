package fsm

import (
	"slices"

	"limitd/snapshot"
)

// What changed since the last snapshot bears a mark in its block: flagEven and
// flagOdd in turns. When a snapshot begins, the shards change turns, so what bore
// the current mark is what the snapshot has to write: it is pending until gather
// has copied it. A block never bears both marks, because a pending block is
// copied aside before it is changed (keep), which takes its pending mark away.
// So the snapshot sees each record as it was when it began, and beginning it
// costs one step per shard however much has changed.

// other is the mark of the pending blocks.
func (s *shard) other() byte { return s.cur ^ flagDirty }

// mark notes that a block changed.
func (s *shard) mark(b block) {
	if !b.is(s.cur) {
		b.set(s.cur)
		s.dirty++
		s.table.dirty.Add(1)
	}
}

// keep copies a pending block aside. It comes before each change of a block.
func (s *shard) keep(b block) {
	if b.is(s.other()) {
		s.aside.add(b)
		b.clear(s.other())
		s.pending--
	}
}

// begin makes what is marked pending. Nothing may be pending.
func (t *Table) begin() {
	for i := range t.shard {
		s := &t.shard[i]
		s.mu.Lock()
		s.cur, s.pending = s.other(), s.dirty
		s.dirty = 0
		t.dirty.Add(-int64(s.pending))
		s.mu.Unlock()
	}
}

// pageBlocks is at least the number of blocks in a page of the arena.
const pageBlocks = pageSize / 2 / unit

// gather appends what was pending, as it was at begin, in no order, and has enough
// look at it after each step; an error of enough ends it. Tombstones leave the
// table. It takes a shard's lock for one page at a time.
func (t *Table) gather(all *[]snapshot.Record, enough func() error) error {
	for i := range t.shard {
		s := &t.shard[i]
		for p, more := 0, true; more; p++ {
			*all = slices.Grow(*all, pageBlocks) // while nobody waits for the lock
			s.mu.Lock()
			if s.pending > 0 {
				s.gatherPage(p)
			}
			*all = append(*all, s.aside.records...)
			s.aside.records = s.aside.records[:0]
			if more = s.pending > 0; !more {
				s.aside = copies{}
			}
			s.mu.Unlock()
			if err := enough(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shard) gatherPage(p int) {
	s.walk(p, func(r uint32, b block) {
		if !b.is(s.other()) {
			return
		}
		s.keep(b)
		if b.is(flagTomb) {
			s.discard(r, b)
		}
	})
	s.account()
}

// retract makes what is still pending part of the next snapshot: this one was not written.
func (t *Table) retract() {
	for i := range t.shard {
		s := &t.shard[i]
		s.mu.Lock()
		for p := 0; s.pending > 0; p++ {
			s.walk(p, func(_ uint32, b block) {
				if b.is(s.other()) {
					b.clear(s.other())
					s.pending--
					s.mark(b)
				}
			})
			s.mu.Unlock()
			s.mu.Lock()
		}
		s.aside = copies{} // their blocks changed since, and are marked
		s.mu.Unlock()
	}
}

// putBack marks the record of that name, which a snapshot had taken and did not write. If it changed since, it is marked already.
func (t *Table) putBack(name []byte) error {
	switch len(name) {
	case 0:
		t.wiped.add(0, true)
	case 1:
		t.wiped.add(name[0], false)
	default:
		return t.touch(name)
	}
	return nil
}

// touch marks the record of that name, or its absence.
func (t *Table) touch(recordName []byte) error {
	ns, key, ident, err := snapshot.SplitName(recordName)
	if err != nil {
		return err
	}
	h := t.Hash(ns, key)
	s, n := t.of(h), name{tagOf(h), ns, key, ident}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, _ := s.find(n)
	if b == nil {
		if t.wiped.has(ns) {
			return nil
		}
		b = s.add(n, sizeOf(len(key), len(ident), 0, true))
		s.account()
	}
	s.mark(b)
	return nil
}

// copies are records copied out of the table, in few allocations.
type copies struct {
	records []snapshot.Record
	chunk   []byte
}

func (c *copies) add(b block) {
	n := 3 + b.keyLen() + b.identLen()
	r := snapshot.Record{Expiry: b.expiry(), Deleted: b.is(flagTomb)}
	if !r.Deleted {
		n += b.stateLen()
	}
	if n > cap(c.chunk)-len(c.chunk) {
		c.chunk = make([]byte, 0, max(n, min(64<<10, 2*cap(c.chunk)), 512))
	}
	start := len(c.chunk)
	c.chunk = snapshot.AppendName(c.chunk, b[blkNS], b.key(), b.ident())
	mid := len(c.chunk)
	r.Name = c.chunk[start:mid:mid]
	if !r.Deleted {
		c.chunk = append(c.chunk, b.state()...)
		r.State = c.chunk[mid:len(c.chunk):len(c.chunk)]
	}
	c.records = append(c.records, r)
}
