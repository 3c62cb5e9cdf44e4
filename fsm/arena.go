package fsm

import "math/bits"

// arena holds the blocks of a shard in pages without pointers, so that the
// garbage collector has nothing to look at, however many records there are.
//
// Pages are 64 KiB (the first ones of a shard smaller), cut from front to back
// into blocks that are never joined again, so a page can always be walked. A
// freed block goes to the free list of its size class and serves the next record
// of that class; what fragmentation is left, compact removes. A record above 16
// KiB has a page of its own.
type arena struct {
	pages [][]byte
	holes []uint32 // numbers of pages that are nil
	open  int      // the page being cut, -1: none yet
	used  int      // units of it that are cut
	free  [classes]uint32
	idle  int64 // bytes in free lists
	held  int64 // bytes of pages
}

const (
	pageBits  = 16
	pageSize  = 1 << pageBits
	firstPage = 4 << 10
	unitBits  = pageBits - 3    // a ref is page number, unit in it
	maxShared = 16 << 10 / unit // units; larger blocks have their own page
	exact     = 64              // up to here there is a class for each size
	classes   = exact + 5*8 + 1 // then 8 for each doubling up to maxShared
)

// ref is the name of the block at unit u of a page; 0 is no block's.
func ref(page, u int) uint32 { return uint32(page<<unitBits|u) + 1 }

func (a *arena) at(r uint32) block {
	r--
	return a.pages[r>>unitBits][(r&(1<<unitBits-1))*unit:]
}

// class is the free list whose blocks all have at least the class's size and
// fewer units than the next class.
func class(units int) int {
	if units <= exact {
		return units
	}
	b := bits.Len(uint(units)) - 1
	return exact + (b-6)*8 + units>>(b-3)&7
}

// roundUp is the smallest size of a class that is not below units.
func roundUp(units int) int {
	if units <= exact {
		return units
	}
	s := bits.Len(uint(units-1)) - 4
	return (units + 1<<s - 1) >> s << s
}

// alloc returns a block of at least size bytes with garbage in it.
func (a *arena) alloc(size int) uint32 {
	units := (size + unit - 1) / unit
	if units > maxShared {
		return a.allocPage(size)
	}
	units = roundUp(units)
	c := class(units)
	if r := a.free[c]; r != 0 {
		b := a.at(r)
		a.free[c] = b.next()
		a.idle -= int64(b.units()) * unit
		return r
	}
	if a.open < 0 || a.used+units > len(a.pages[a.open])/unit {
		a.openPage(units)
	}
	r := ref(a.open, a.used)
	a.used += units
	a.at(r).setUnits(units)
	return r
}

// openPage puts the rest of the open page into the free lists and opens another
// with room for units.
func (a *arena) openPage(units int) {
	size := firstPage
	if a.open >= 0 {
		if p := a.pages[a.open]; a.used < len(p)/unit {
			rest := block(p[a.used*unit:])
			rest.setUnits(len(p)/unit - a.used)
			a.used = len(p) / unit
			a.release(ref(a.open, a.used-rest.units()))
		}
		size = min(pageSize, max(firstPage, len(a.pages[a.open])*2))
	}
	for size < units*unit {
		size *= 2
	}
	a.open, a.used = a.addPage(size), 0
}

func (a *arena) allocPage(size int) uint32 {
	const grain = 4 << 10
	p := a.addPage((size + size/8 + grain - 1) / grain * grain)
	block(a.pages[p]).setUnits(0)
	return ref(p, 0)
}

func (a *arena) addPage(size int) int {
	a.held += int64(size)
	if n := len(a.holes); n > 0 {
		p := a.holes[n-1]
		a.holes = a.holes[:n-1]
		a.pages[p] = make([]byte, size)
		return int(p)
	}
	a.pages = append(a.pages, make([]byte, size))
	return len(a.pages) - 1
}

// release gives a block back.
func (a *arena) release(r uint32) {
	b := a.at(r)
	u := b.units()
	if u == 0 {
		p := (r - 1) >> unitBits
		a.held -= int64(len(a.pages[p]))
		a.pages[p] = nil
		a.holes = append(a.holes, p)
		return
	}
	b[blkFlags] = flagFree
	a.idle += int64(u) * unit
	if u > 1 { // a single unit has no room for the link
		b.setNext(a.free[class(u)])
		a.free[class(u)] = r
	}
}

// room is the size of a block in bytes.
func (a *arena) room(b block) int {
	if u := b.units(); u > 0 {
		return u * unit
	}
	return len(b)
}

// fits says that a record of size bytes may stay in b: it has room, and does not
// waste much.
func (a *arena) fits(b block, size int) bool {
	room := a.room(b)
	return size <= room && room <= 2*size+64
}

// walk calls fn for each block of page p that is not free. fn may release the
// block, and may allocate others. It returns the number of blocks seen, free ones too.
func (a *arena) walk(p int, fn func(r uint32, b block)) (seen int) {
	page := a.pages[p]
	end := len(page) / unit
	if p == a.open {
		end = a.used
	}
	for u := 0; u < end; seen++ {
		b := block(page[u*unit:])
		r, n := ref(p, u), b.units()
		if n == 0 {
			n = end
		}
		if !b.is(flagFree) {
			fn(r, b)
		}
		u += n
	}
	return seen
}
