package fsm

// index finds the blocks of a shard: open addressing over slots of 8 bytes, kept
// in ascending order of the tag.
//
// A tag is 32 bits of the key's hash. Its home is its place among the tags
// scaled to the number of homes, so tags in order have homes in order. A slot
// sits at its home or, with linear probing, after it, without a gap between; all
// slots are sorted. Therefore a search stops at the first larger tag, growing is
// one pass, and a scan in hash order is a walk. The slots run on behind the last
// home, and the last slot is always empty.
//
// The records of one key have one tag: they are neighbours.
type index struct {
	slots []slot
	homes int
	n     int // slots in use
}

type slot struct{ tag, ref uint32 } // ref 0: empty

const (
	slotSize   = 8
	firstHomes = 16
)

func (x *index) home(tag uint32) int { return int(uint64(tag) * uint64(x.homes) >> 32) }

// seek returns the first slot whose tag is not below tag, or the empty one where the search ends.
func (x *index) seek(tag uint32) int {
	i := x.home(tag)
	for x.slots[i].ref != 0 && x.slots[i].tag < tag {
		i++
	}
	return i
}

// insert adds a slot. Two equal tags are two blocks.
func (x *index) insert(tag, r uint32) {
	if (x.n+1)*8 > x.homes*7 {
		x.resize(max(firstHomes, x.homes+x.homes/2))
	}
	i := x.seek(tag)
	end := i
	for x.slots[end].ref != 0 {
		end++
	}
	if end == len(x.slots)-1 {
		x.lengthen()
	}
	copy(x.slots[i+1:end+1], x.slots[i:end])
	x.slots[i] = slot{tag, r}
	x.n++
}

// remove takes slot i out and lets those behind it that are not at home move up.
func (x *index) remove(i int) {
	end := i + 1
	for x.slots[end].ref != 0 && x.home(x.slots[end].tag) < end {
		end++
	}
	copy(x.slots[i:], x.slots[i+1:end])
	x.slots[end-1] = slot{}
	x.n--
}

// slotOf finds the slot of a block that is there.
func (x *index) slotOf(tag, r uint32) int {
	i := x.seek(tag)
	for x.slots[i].ref != r {
		i++
	}
	return i
}

// resize gives the index another number of homes; what is in it stays in order.
func (x *index) resize(homes int) {
	old := *x
	*x = index{slots: make([]slot, homes+homes/64+8), homes: homes}
	for _, s := range old.slots {
		if s.ref != 0 {
			x.push(s)
		}
	}
}

// push adds a slot whose tag is not below any other's.
func (x *index) push(s slot) {
	i := x.home(s.tag)
	for x.slots[i].ref != 0 {
		i++
	}
	if i == len(x.slots)-1 {
		x.lengthen()
	}
	x.slots[i] = s
	x.n++
}

func (x *index) lengthen() {
	longer := make([]slot, len(x.slots)+len(x.slots)/16+8)
	copy(longer, x.slots)
	x.slots = longer
}
