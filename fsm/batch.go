package fsm

// batch applies the record effects of an entry shard by shard. Its memory is used again for the next entry.
type batch struct {
	ops, sorted []op
	start       [shards + 1]int32
	clears      []clearing
	splices     bool
}

// op is one record effect of the entry.
type op struct {
	hash uint64
	pos  uint32 // where it is in the entry's body
	size int32  // possible only: length of the state after it
}

// clearing is one OpClear or OpClearAll.
type clearing struct {
	pos uint32
	ns  uint8
	all bool
}

// load sorts the effects of the entry by shard, in the entry's order within a shard.
func (b *batch) load(t *Table, e *entry) {
	b.ops, b.clears, b.splices = b.ops[:0], b.clears[:0], false
	b.start = [shards + 1]int32{}
	for d := e.effects(0); len(d.rest) > 0; {
		pos := uint32(len(e.body) - len(d.rest))
		d.mustNext()
		switch x := &d.effect; x.Op {
		case OpReplace, OpSplice, OpDelete:
			h := t.Hash(x.NS, x.Key)
			b.ops = append(b.ops, op{hash: h, pos: pos})
			b.start[h>>56+1]++
			b.splices = b.splices || x.Op == OpSplice
		case OpClear, OpClearAll:
			b.clears = append(b.clears, clearing{pos, x.NS, x.Op == OpClearAll})
		}
	}
	for i := range shards {
		b.start[i+1] += b.start[i]
	}
	if cap(b.sorted) < len(b.ops) {
		b.sorted = make([]op, len(b.ops)+len(b.ops)/2)
	}
	b.sorted = b.sorted[:len(b.ops)]
	at := b.start
	for _, o := range b.ops {
		i := o.hash >> 56
		b.sorted[at[i]] = o
		at[i]++
	}
}

func (b *batch) ofShard(i int) []op { return b.sorted[b.start[i]:b.start[i+1]] }

// possible says that no splice drops and cuts more than there is or makes too much. It
// looks at all of them before anything is changed. In equal states the leader
// would not have made such a splice, and a node that is the only one to find the
// batch void diverges visibly: the next batch was decided on it.
func (b *batch) possible(t *Table, e *entry, now int64) bool {
	if !b.splices {
		return true
	}
	for i := range t.shard {
		group := b.ofShard(i)
		for j := range group {
			o := &group[j]
			d := e.effects(int(o.pos))
			d.mustNext()
			x := &d.effect
			switch {
			case x.Op == OpDelete || x.Expiry <= now:
				o.size = 0
			case d.same:
				o.size = 8
			default:
				o.size = int32(len(x.State))
			}
			if x.Op != OpSplice {
				continue
			}
			before := b.before(t, e, group[:j], o, x, now)
			kept := before - x.Drop - x.Cut
			if kept < 0 || kept+len(x.State) > MaxState {
				return false
			}
			if x.Expiry > now {
				o.size += int32(kept)
			}
		}
	}
	return true
}

// before is the length of the state that the splice x, at o, starts from.
func (b *batch) before(t *Table, e *entry, earlier []op, o *op, x *Effect, now int64) int {
	cleared := -1
	for _, c := range b.clears {
		if c.pos < o.pos && (c.all || c.ns == x.NS) {
			cleared = int(c.pos)
		}
	}
	n := name{tagOf(o.hash), x.NS, x.Key, x.Ident}
	for j := len(earlier) - 1; j >= 0 && int(earlier[j].pos) > cleared; j-- {
		if earlier[j].hash != o.hash {
			continue
		}
		d := e.effects(int(earlier[j].pos))
		d.mustNext()
		if y := &d.effect; y.NS == n.ns && string(y.Key) == string(n.key) && string(y.Ident) == string(n.ident) {
			return int(earlier[j].size)
		}
	}
	if cleared >= 0 {
		return 0
	}
	s := t.of(o.hash)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if blk, _ := s.live(n, now); blk != nil {
		return blk.stateLen()
	}
	return 0
}

// apply makes the changes, with one lock per shard.
func (b *batch) apply(t *Table, e *entry, now int64) {
	for _, c := range b.clears {
		t.wiped.add(c.ns, c.all)
	}
	for i := range t.shard {
		group := b.ofShard(i)
		if len(group) == 0 && len(b.clears) == 0 {
			continue
		}
		s, clears := &t.shard[i], b.clears
		s.mu.Lock()
		s.warm(group)
		for j := range group {
			for ; len(clears) > 0 && clears[0].pos < group[j].pos; clears = clears[1:] {
				s.wipe(clears[0].ns, clears[0].all)
			}
			s.change(&group[j], e, now)
		}
		for _, c := range clears {
			s.wipe(c.ns, c.all)
		}
		s.account()
		s.mu.Unlock()
	}
}

// warm reads the slots of the group and then the blocks, so that the processor
// waits for many of them at a time and not for one after the other.
func (s *shard) warm(group []op) {
	if s.n == 0 || len(group) < 2 {
		return
	}
	for j := range group {
		s.touched += s.slots[s.home(tagOf(group[j].hash))].tag
	}
	for j := range group {
		if r := s.slots[s.seek(tagOf(group[j].hash))].ref; r != 0 {
			s.touched += uint32(s.at(r)[blkNS])
		}
	}
}

func (s *shard) change(o *op, e *entry, now int64) {
	d := e.effects(int(o.pos))
	d.mustNext()
	x := &d.effect
	n := name{tagOf(o.hash), x.NS, x.Key, x.Ident}
	switch x.Op {
	case OpReplace:
		s.mark(s.put(n, x.State, d.same, x.Expiry))
	case OpSplice:
		s.mark(s.splice(n, x.Drop, x.Cut, x.State, x.Expiry, now))
	case OpDelete:
		s.remove(n)
	}
}

// mustNext reads an effect that parseEntry has checked.
func (d *decoder) mustNext() {
	if err := d.next(); err != nil {
		panic("fsm: checked effect: " + err.Error())
	}
}
