package fsm

import (
	"sync"

	"limitd/snapshot"
)

// wipes are namespaces that were cleared. The snapshot that comes next removes
// all their records from the file before it writes those that came after, so
// what was cleared needs no tombstone of its own.
type wipes struct {
	mu  sync.Mutex
	all bool
	ns  [256]bool
}

func (w *wipes) add(ns uint8, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = w.all || all
	w.ns[ns] = w.ns[ns] || !all
}

func (w *wipes) has(ns uint8) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all || w.ns[ns]
}

// take empties w and returns what it held as records for the snapshot, in the
// form that [snapshot.Sink.Commit] knows.
func (w *wipes) take() (records []snapshot.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all {
		records = append(records, snapshot.Record{Deleted: true})
	}
	for ns, yes := range w.ns {
		if yes {
			records = append(records, snapshot.Record{Name: []byte{byte(ns)}, Deleted: true})
		}
	}
	w.all, w.ns = false, [256]bool{}
	return records
}

// wipe removes all records of namespace ns, or all there are. A shard that holds
// nothing else, which is the usual case, gives its memory back at once; in
// another one the records become tombstones.
func (s *shard) wipe(ns uint8, all bool) {
	if all || s.holdsOnly(ns) {
		s.reset()
		return
	}
	for p := range len(s.pages) {
		s.walk(p, func(r uint32, b block) {
			if b[blkNS] == ns && !b.is(flagTomb) {
				s.bury(r, b)
			}
		})
	}
}

func (s *shard) holdsOnly(ns uint8) bool {
	only := true
	for p := 0; p < len(s.pages) && only; p++ {
		s.walk(p, func(_ uint32, b block) { only = only && b[blkNS] == ns })
	}
	return only
}

// reset makes the shard empty.
func (s *shard) reset() {
	var gone [256]int64
	for p := range s.pages {
		s.walk(p, func(_ uint32, b block) {
			s.keep(b)
			if !b.is(flagTomb) {
				gone[b[blkNS]]++
			}
		})
	}
	for ns, n := range gone {
		if n > 0 {
			s.table.records[ns].Add(-n)
		}
	}
	s.table.dirty.Add(-int64(s.dirty))
	s.dirty, s.index, s.arena = 0, index{}, arena{open: -1}
}
