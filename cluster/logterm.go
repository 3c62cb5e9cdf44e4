package cluster

import "sync/atomic"

// newestTerm is the newest term in the log, and the first index that is known to
// be of it. A new leader does not know yet what was committed before it, until an
// entry of its own term is: what it says of the commit index before that may be
// older than an answer of its predecessor.
type newestTerm struct{ atomic.Pointer[termStart] }

type termStart struct{ term, first uint64 }

// note takes down that the entry at index is of term. One goroutine calls it and cut.
func (t *newestTerm) note(index, term uint64) {
	if old := t.Load(); old != nil && (term < old.term || term == old.term && index >= old.first) {
		return
	}
	t.Store(&termStart{term, index})
}

// cut takes down that the entries from lo on are gone.
func (t *newestTerm) cut(lo uint64) {
	if old := t.Load(); old != nil && old.first >= lo {
		t.Store(nil)
	}
}

// covers says whether commit, told by the leader of term, reaches an entry of that
// term, and so everything that was ever committed until it was told.
func (t *newestTerm) covers(term, commit uint64) bool {
	s := t.Load()
	return s != nil && s.term == term && commit >= s.first
}
