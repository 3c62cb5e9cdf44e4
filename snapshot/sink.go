package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"
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
// synced transaction that the newest receipt joins. Records in name order are written fastest; of two with one name the later counts.
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
	receipt := s.newestReceipt()
	Failpoint("commit.begin")
	err := s.write(func(tx *bolt.Tx) error {
		old, err := readMeta(s.Path(), tx)
		if err != nil {
			return err
		}
		m.tally = old.tally
		if err := putRecords(s.Path(), tx, m, records); err != nil {
			return err
		}
		if err := putSnapshot(tx, *m, receipt); err != nil {
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
	s.meta = *m
	if receipt != nil {
		s.receipt = receipt
	}
	return nil
}

// putRecords brings the records of the file up to date and m's tally with them.
func putRecords(path string, tx *bolt.Tx, m *fileMeta, records []Record) error {
	b := tx.Bucket(bucketRecords)
	var chunk []byte // bolt keeps the values until the commit, and copies the names
	for i := range records {
		r := &records[i]
		if r.Deleted && len(r.Name) <= 1 {
			if err := clearRecords(path, b, r.Name, &m.tally); err != nil {
				return err
			}
			continue
		}
		if err := checkRecord(r.Name, r.State); err != nil {
			return err
		}
		if old := b.Get(r.Name); old != nil {
			x, ok := decodeValue(r.Name, old)
			if !ok {
				return damagedRecord(path, r.Name)
			}
			m.sub(x.crc)
			if r.Deleted || r.Expiry <= m.T {
				if err := b.Delete(r.Name); err != nil {
					return err
				}
			}
		}
		if r.Deleted || r.Expiry <= m.T {
			continue
		}
		if n := valueLen(r.State, r.Expiry); n > cap(chunk)-len(chunk) {
			chunk = make([]byte, 0, max(n, 256<<10))
		}
		start := len(chunk)
		var crc uint32
		chunk, crc = appendValue(chunk, r.Name, r.State, r.Expiry)
		if err := b.Put(r.Name, chunk[start:len(chunk):len(chunk)]); err != nil {
			return err
		}
		m.add(crc)
	}
	return nil
}

// clearRecords removes every record whose name has the prefix.
func clearRecords(path string, b *bolt.Bucket, prefix []byte, t *tally) error {
	for {
		// A cursor does not survive a deletion, so the names are collected first, a bounded number at a time.
		var names [][]byte
		c := b.Cursor()
		for name, v := c.Seek(prefix); name != nil && bytes.HasPrefix(name, prefix) && len(names) < 10000; name, v = c.Next() {
			x, ok := decodeValue(name, v)
			if !ok {
				return damagedRecord(path, name)
			}
			t.sub(x.crc)
			names = append(names, bytes.Clone(name))
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := b.Delete(name); err != nil {
				return err
			}
		}
	}
}

func checkRecord(name, state []byte) error {
	if _, _, _, err := SplitName(name); err != nil {
		return err
	}
	if len(state) > MaxState {
		return fmt.Errorf("state of %s has %d bytes, at most %d", describe(name), len(state), MaxState)
	}
	return nil
}

// describe names a record for people: its namespace and key.
func describe(name []byte) string {
	ns, key, ident, err := SplitName(name)
	if err != nil {
		return fmt.Sprintf("record %.64x", name)
	}
	return fmt.Sprintf("namespace %d key %.256q record %x", ns, key, ident)
}

func damagedRecord(path string, name []byte) error {
	return damaged(path, "checksum of %s", describe(name))
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
