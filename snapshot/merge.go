package snapshot

import (
	"bytes"
	"container/heap"
	"io"
)

// merge gives the records that a file has after a snapshot, in name order: those of the file before it, and over them those of the runs.
// It removes what is not alive at now. What it gives is valid until the next call.
type merge struct {
	now     int64
	base    walk
	meta    *fileMeta // of the base
	seen    tally     // of what the base gave
	old     entry     // of the base, not yet given; no name: the end
	runs    runHeap   // each with a record that is not yet given
	given   *run      // has given its record, and has to read the next
	all     bool      // removed from the base is everything, or
	cleared [256]bool // everything of a namespace
}

// newMerge begins a merge. The cursor of the base is at its first record.
func newMerge(base walk, meta *fileMeta, r *runs, now int64) (*merge, error) {
	m := &merge{now: now, base: base, meta: meta}
	if err := m.stepBase(); err != nil {
		return nil, err
	}
	for i := range r.ends {
		if err := m.step(r.open(i)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// next returns the next record; one without a name at the end, when the base is found to be what its meta data says.
func (m *merge) next() (e entry, err error) {
	for {
		if x := m.given; x != nil {
			m.given = nil
			if err := m.step(x); err != nil {
				return e, err
			}
		}
		order := -1
		switch {
		case m.old.name == nil && len(m.runs) == 0:
			return entry{}, m.seen.check(m.base.path, m.meta)
		case m.old.name == nil:
			order = 1
		case len(m.runs) > 0:
			order = bytes.Compare(m.old.name, m.runs[0].name)
		}
		if order <= 0 {
			e = m.old
			if err := m.stepBase(); err != nil {
				return e, err
			}
			if order < 0 && e.expiry > m.now && !m.all && !m.cleared[e.name[0]] {
				return e, nil
			}
			continue // at equality the run's comes next
		}
		x, err := m.take()
		if err != nil {
			return e, err
		}
		switch {
		case !x.deleted && x.expiry > m.now:
			return x.entry, nil
		case x.deleted && len(x.name) == 0:
			m.all = true
		case x.deleted && len(x.name) == 1:
			m.cleared[x.name[0]] = true
		}
	}
}

// take takes the next record of the runs, and those of the same name that it replaces.
func (m *merge) take() (*run, error) {
	x := heap.Pop(&m.runs).(*run)
	m.given = x
	for len(m.runs) > 0 && bytes.Equal(m.runs[0].name, x.name) {
		if err := m.step(heap.Pop(&m.runs).(*run)); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// step has a run read its next record, if it has one more.
func (m *merge) step(x *run) error {
	switch err := x.next(); err {
	case nil:
		heap.Push(&m.runs, x)
		return nil
	case io.EOF:
		return nil
	default:
		return err
	}
}

func (m *merge) stepBase() (err error) {
	if m.old, err = m.base.next(); err == nil && m.old.name != nil {
		m.seen.add(m.old.crc)
	}
	return err
}

// runHeap has the run with the least name first, of equal names that of the youngest run.
type runHeap []*run

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	if c := bytes.Compare(h[i].name, h[j].name); c != 0 {
		return c < 0
	}
	return h[i].age > h[j].age
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
