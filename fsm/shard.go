package fsm

import "sync"

// shard is a part of the table with a lock of its own. Its methods need the
// lock; those that change something need it for writing.
type shard struct {
	mu    sync.RWMutex
	table *Table
	index
	arena

	cur     byte // flagEven or flagOdd: the mark of a block changed since the last snapshot began
	dirty   int  // blocks that bear cur
	pending int  // blocks that bear the other mark
	aside   copies

	touched      uint32 // by warm, which would be optimized away without
	reported     int64  // bytes that table.bytes knows of
	reportedIdle int64  // and table.idle
}

// find returns the block of a record and its slot, be it a tombstone; nil if there is none.
func (s *shard) find(n name) (block, int) {
	if s.n == 0 {
		return nil, 0
	}
	for i := s.seek(n.tag); s.slots[i].ref != 0 && s.slots[i].tag == n.tag; i++ {
		if b := s.at(s.slots[i].ref); b.isRecord(n) {
			return b, i
		}
	}
	return nil, 0
}

// live returns the block of a record that means something at now, nil if there is none.
func (s *shard) live(n name, now int64) (block, int) {
	b, i := s.find(n)
	if b == nil || b.is(flagTomb) || b.expiry() <= now {
		return nil, 0
	}
	return b, i
}

// put makes the record what it says. With same the state is the expiry. The caller marks the block.
func (s *shard) put(n name, state []byte, same bool, expiry int64) block {
	size := sizeOf(len(n.key), len(n.ident), len(state), same)
	b, i := s.find(n)
	switch {
	case b == nil:
		b = s.add(n, size)
	default:
		s.keep(b)
		if !s.fits(b, size) {
			b = s.move(i, size)
		}
	}
	if b.is(flagTomb) {
		s.table.records[n.ns].Add(1)
	}
	b.setState(state, same, expiry)
	return b
}

// add makes a tombstone of n with room for size bytes.
func (s *shard) add(n name, size int) block {
	r := s.alloc(size)
	b := s.at(r)
	b.setName(n)
	s.insert(n.tag, r)
	return b
}

// move gives the block of slot i another place of size bytes, with its name and flags but
// without its state, and releases the old one.
func (s *shard) move(i, size int) block {
	old := s.slots[i].ref
	from := s.at(old)
	r := s.alloc(size)
	b := s.at(r)
	copy(b[:blkUnits], from)
	copy(b[blkExpiry:], from[blkExpiry:blkName+from.keyLen()+from.identLen()])
	s.slots[i].ref = r
	s.release(old)
	return b
}

// splice drops bytes in front of the state of a live record, cuts bytes at its end
// and appends tail. drop and cut are together at most the state's length.
func (s *shard) splice(n name, drop, cut int, tail []byte, expiry, now int64) block {
	b, i := s.live(n, now)
	if b == nil {
		return s.put(n, tail, false, expiry)
	}
	s.keep(b)
	old := b.state()
	kept := len(old) - drop - cut
	length := kept + len(tail)
	size := sizeOf(len(n.key), len(n.ident), length, false)
	if !b.is(flagSame) && s.fits(b, size) {
		if drop > 0 {
			copy(old, old[drop:drop+kept])
		}
		copy(b.stretch(length)[kept:], tail)
		b.setExpiry(expiry)
		return b
	}
	if b.is(flagSame) { // releasing the block overwrites the expiry, but not a state behind the name
		old = append(make([]byte, 0, 8), old...)
	}
	b = s.move(i, size)
	b.clear(flagSame)
	state := b.stretch(length)
	copy(state[copy(state, old[drop:drop+kept]):], tail)
	b.setExpiry(expiry)
	return b
}

// remove turns the record into a tombstone, which the next snapshot takes and drops.
func (s *shard) remove(n name) {
	if b, i := s.find(n); b != nil && !b.is(flagTomb) {
		s.bury(s.slots[i].ref, b)
	}
}

// bury turns a live block into a tombstone.
func (s *shard) bury(r uint32, b block) {
	s.keep(b)
	s.table.records[b[blkNS]].Add(-1)
	b.set(flagTomb | flagSame)
	s.mark(b)
	if size := b.size(); !s.fits(b, size) {
		s.move(s.slotOf(s.tag(b), r), size)
	}
}

// discard takes a block out of the shard.
func (s *shard) discard(r uint32, b block) {
	s.index.remove(s.slotOf(s.tag(b), r))
	s.release(r)
}

func (s *shard) tag(b block) uint32 { return tagOf(s.table.Hash(b[blkNS], b.key())) }

// account tells the table what the shard holds. It is called before the lock is given back.
func (s *shard) account() {
	if held := s.arena.held + int64(len(s.slots))*slotSize; held != s.reported {
		s.table.bytes.Add(held - s.reported)
		s.reported = held
	}
	if s.idle != s.reportedIdle {
		s.table.idle.Add(s.idle - s.reportedIdle)
		s.reportedIdle = s.idle
	}
}
