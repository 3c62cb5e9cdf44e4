package snapshot

import (
	"errors"
	"fmt"
	"io"
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

	pipe  *io.PipeWriter // to the goroutine that builds
	built chan error     // its end
	db    *bolt.DB       // what it built
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

// Commit is how FSMSnapshot.Persist writes a local snapshot: the records that changed since the last one, and the header, in one
// synced transaction that the newest receipt and note join. Records in name order are written fastest; of two with one name the later counts.
// A record that is not alive at h.T is removed. Deleted with the empty name removes every record, and with the one byte of a
// namespace every record of it; later records of the slice are written after that.
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
	k.err = k.s.commit(&k.meta, records)
	return k.err
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
}

func (s *Store) commit(m *fileMeta, records []Record) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if old, _ := s.Meta(); m.Index < old.Index {
		return fmt.Errorf("snapshot %s: %w, %s", m.id(), ErrSuperseded, old.id())
	}
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
