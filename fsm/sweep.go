package fsm

import "sync"

// sweeper is where the sweep goes on: a page of a shard.
type sweeper struct {
	mu          sync.Mutex
	shard, page int
}

// sweepStep looks through the table for about n blocks, a page under a lock, and
// turns records that expired at now into tombstones. It ends after one round
// through the table. When it leaves a shard that holds much more than it needs,
// it compacts it.
func (t *Table) sweepStep(n int, now int64) (dropped int) {
	w := &t.sweep
	w.mu.Lock()
	defer w.mu.Unlock()
	for left := shards; n > 0 && left > 0; {
		s := &t.shard[w.shard]
		s.mu.Lock()
		if w.page < len(s.pages) {
			n -= 1 + s.walk(w.page, func(r uint32, b block) {
				if !b.is(flagTomb) && b.expiry() <= now {
					s.bury(r, b)
					dropped++
				}
			})
			w.page++
		} else {
			s.compact()
			w.shard, w.page = (w.shard+1)%shards, 0
			left--
			n--
		}
		s.account()
		s.mu.Unlock()
	}
	return dropped
}

// compact rebuilds the shard in fresh pages when less than half of what it holds
// is in use, so that memory comes back after a peak. It waits while a snapshot
// has pages to walk.
func (s *shard) compact() {
	const small = 16 << 10
	sparse := s.idle > s.held/2 || s.homes > firstHomes && s.n < s.homes/4
	if s.pending > 0 || !sparse || s.held+int64(len(s.slots))*slotSize <= small {
		return
	}
	old := s.arena
	s.arena = arena{open: -1}
	s.index.resize(max(firstHomes, s.n+s.n/2))
	for i := range s.slots {
		if s.slots[i].ref == 0 {
			continue
		}
		from := old.at(s.slots[i].ref)
		size := from.size()
		r := s.alloc(size)
		to := s.at(r)
		copy(to[:blkUnits], from)
		copy(to[blkExpiry:size], from[blkExpiry:])
		s.slots[i].ref = r
	}
}
