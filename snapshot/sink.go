package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"

	"limitd/mutant"
)

// Sink is the raft.SnapshotSink of a Store. Raft makes one both for a local snapshot and for one that a leader sends; what is done
// with it first decides which it is: Commit makes it local, Write an install. It is used from one goroutine at a time.
type Sink struct {
	s    *Store
	meta fileMeta

	mu     sync.Mutex
	kind   int   // kindFresh, kindLocal or kindInstall
	closed bool  // by Close or Cancel
	err    error // of Commit or of the install, repeated by Close
	turn   bool  // holds Store.turn

	runs *runs // of Add; nil: there was none

	pipe  *io.PipeWriter // to the goroutine that builds
	built chan error     // its end
	file  *builder       // what it builds
	db    *bolt.DB       // and opened
}

const (
	kindFresh = iota
	kindLocal
	kindInstall
)

// Create returns a sink for the snapshot at (index, term). It touches nothing.
func (s *Store) Create(_ raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if err := s.broken(); err != nil {
		return nil, err
	}
	if index == 0 {
		return nil, fmt.Errorf("%s: a snapshot at index 0", s.Path())
	}
	return &Sink{s: s, meta: fileMeta{Meta: Meta{Index: index, Term: term, Configuration: c.Clone(), ConfigurationIndex: ci}}}, nil
}

// ID is the snapshot's id, for List and Open.
func (k *Sink) ID() string { return k.meta.id() }

// Add takes a portion of the records of a local snapshot that is too large for one Commit: it keeps nothing of the slice. Within each
// portion, and within what Commit gets then, the names must ascend. Portions may be handed over long before Commit; nothing of the
// store changes. After an error the portion has not been taken.
func (k *Sink) Add(records []Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kind != kindFresh || k.closed {
		return fmt.Errorf("snapshot %s: the sink is in use already", k.ID())
	}
	if err := k.spill(records); err != nil {
		return fmt.Errorf("snapshot %s: %w", k.ID(), err)
	}
	Failpoint("rebuild.added")
	return nil
}

// Sort puts records in name order. It rests now and then.
func (k *Sink) Sort(records []Record) {
	compared := 0
	slices.SortFunc(records, func(a, b Record) int {
		if compared++; compared%4096 == 0 {
			k.Rest()
		}
		return bytes.Compare(a.Name, b.Name)
	})
}

// Rest tells that a local snapshot has moved on, and rests if it is time to; see [Options].Progress.
func (k *Sink) Rest() { k.s.moved() }

// spill writes records to a run.
func (k *Sink) spill(records []Record) (err error) {
	if err := k.s.stopped(); err != nil {
		return err
	}
	if k.runs == nil {
		if k.runs, err = newRuns(k.s.dir); err != nil {
			return err
		}
	}
	return k.s.distrust(k.runs.add(records, k.s.moved))
}

// Added calls fn with the name of each record that Add has taken, until Release: of a snapshot that was not written. Slices are valid
// during the call. Errors are those of the disk and of fn.
func (k *Sink) Added(fn func(name []byte) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil {
		return nil
	}
	return k.runs.names(fn)
}

// Commit is how FSMSnapshot.Persist writes a local snapshot: the records that changed since the last one, beside those that Add has
// taken, and the header, which the newest receipt and note join. Without Add that is one synced transaction, unless that
// would take too much memory or too long; else it is a new file, built beside and renamed over the old one. Records in name order are written fastest; of two
// with one name the later counts. A record that is not alive at h.T is removed. Deleted with the empty name removes every record, and
// with the one byte of a namespace every record of it; later records of the slice are written after that. With Add, such a record
// removes what earlier snapshots wrote.
//
// Below the index of the file Commit writes nothing and returns ErrSuperseded; at the same index it writes again. It takes the store's
// turn, which Release gives back, whatever Commit returned.
func (k *Sink) Commit(h Header, records []Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kind != kindFresh || k.closed {
		return fmt.Errorf("snapshot %s: the sink is in use already", k.ID())
	}
	k.kind = kindLocal
	k.s.turn.Lock()
	k.turn = true
	k.meta.Header = h
	if mutant.On("snapshot-without-last-entry") {
		k.meta.Index++
	}
	k.err = k.commit(records)
	return k.err
}

func (k *Sink) commit(records []Record) error {
	if err := k.s.superseded(&k.meta); err != nil {
		return err
	}
	large, err := k.large(records)
	if err == nil && !large {
		return k.s.commit(&k.meta, records)
	}
	if err == nil {
		err = k.spill(records)
	}
	if err == nil {
		err = k.s.rebuild(&k.meta, k.runs)
	}
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", k.ID(), err)
	}
	Failpoint("rebuild.done")
	return nil
}

// superseded says that the file is past m already.
func (s *Store) superseded(m *fileMeta) error {
	if old, _ := s.Meta(); m.Index < old.Index {
		return fmt.Errorf("snapshot %s: %w, %s", m.id(), ErrSuperseded, old.id())
	}
	return nil
}

// Release ends a local snapshot: the state machine knows by now whether it is the file. It may be called at any time and any number
// of times.
func (k *Sink) Release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.turn {
		k.turn = false
		k.s.turn.Unlock()
	}
	if k.runs != nil {
		k.s.shrink(k.runs.f)
		k.runs = nil
	}
}

func (s *Store) commit(m *fileMeta, records []Record) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	local, version := s.newestLocal(), s.version()
	Failpoint("commit.begin")
	err := s.write(func(tx *bolt.Tx) error {
		old, err := readMeta(s.Path(), tx)
		if err != nil {
			return err
		}
		m.tally, m.version = old.tally, version
		w := recordWriter{path: s.Path(), b: tx.Bucket(bucketRecords), m: m}
		for i := range records {
			if err := w.put(&records[i]); err != nil {
				return err
			}
		}
		if err := putSnapshot(tx, *m, local); err != nil {
			return err
		}
		Failpoint("commit.put")
		return nil
	})
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", m.id(), err)
	}
	Failpoint("commit.done")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta, s.local = *m, local
	return nil
}

// Close ends the sink. Of a local snapshot it says whether it was committed; an install is verified and put in place.
func (k *Sink) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return k.err
	}
	k.closed = true
	switch k.kind {
	case kindFresh:
		k.err = fmt.Errorf("snapshot %s: closed without anything in it", k.ID())
	case kindInstall:
		k.err = k.finish()
	}
	return k.err
}

// Cancel ends the sink and discards what is not in place yet. A committed local snapshot stays.
func (k *Sink) Cancel() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	k.closed = true
	if k.kind == kindInstall {
		k.abandon(errors.New("cancelled"))
	}
	return nil
}
