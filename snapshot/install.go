package snapshot

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Write takes the next bytes of a snapshot that the leader sends. The first call begins the install.
func (k *Sink) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.kind == kindLocal {
		return 0, fmt.Errorf("snapshot %s: written to after Commit or Close", k.ID())
	}
	if k.kind == kindFresh {
		if err := k.begin(); err != nil {
			return 0, err
		}
	}
	return k.pipe.Write(p)
}

func (k *Sink) begin() error {
	if _, err := k.s.admit(&k.meta.Meta); err != nil {
		return fmt.Errorf("install snapshot %s: %w", k.ID(), err)
	}
	k.s.mu.Lock()
	busy, closed := k.s.installing != nil, k.s.closed
	if !busy && !closed {
		k.s.installing = k
	}
	k.s.mu.Unlock()
	switch {
	case closed:
		return fmt.Errorf("install snapshot %s: %s is %w", k.ID(), k.s.Path(), ErrClosed)
	case busy:
		return fmt.Errorf("install snapshot %s: another install is running", k.ID())
	}
	k.kind = kindInstall
	r, w := io.Pipe()
	k.pipe, k.built = w, make(chan error, 1)
	go func() {
		err := k.build(r)
		r.CloseWithError(err) // a writer that waits learns of it
		k.built <- err
	}()
	return nil
}

// admit says whether a snapshot at m may be installed, and whether it is the one that the file has.
func (s *Store) admit(m *Meta) (same bool, err error) {
	have, _ := s.Meta()
	if m.Index < have.Index || m.Index == have.Index && m.Term != have.Term {
		return false, fmt.Errorf("%w: the file has %s", ErrStale, have.id())
	}
	if fn := s.options().Applied; fn != nil {
		if applied := fn(); m.Index < applied {
			return false, fmt.Errorf("%w: index %d is applied", ErrStale, applied)
		}
	}
	return m.Index == have.Index, nil
}

// buildSteps are the steps in which a new file is built: a transaction, which is not synced, has at most so many records or about so
// many bytes of them, and the file is synced whenever about so many bytes have been written. What is left for the end is then small,
// and a disk that gets on shows it.
type buildSteps struct{ records, bytes, synced int }

// build writes the records of the stream into the new file.
func (k *Sink) build(r io.Reader) error {
	db, err := createBolt(k.newPath(), k.s.mmap)
	if err != nil {
		return err
	}
	k.db = db
	Failpoint("install.begin")
	steps := k.s.build
	batch := make([]Record, 0, steps.records)
	var held []byte // what the batch's slices are cut from
	unsynced := 0
	put := func() error {
		_, err := update(k.newPath(), db, func(tx *bolt.Tx) error {
			w := recordWriter{path: k.newPath(), b: tx.Bucket(bucketRecords), m: &k.meta, fresh: true}
			w.b.FillPercent = 0.9 // the names come in order
			for i := range batch {
				if err := w.put(&batch[i]); err != nil {
					return err
				}
			}
			return nil
		})
		unsynced += len(held)
		batch, held = batch[:0], held[:0]
		Failpoint("install.batch")
		if err == nil && unsynced >= steps.synced {
			unsynced = 0
			k.s.moved()
			err = k.s.disk.sync(db)
		}
		k.s.moved()
		return err
	}
	head := func(h Header) error {
		if h.Last > k.meta.Index {
			return fmt.Errorf("its last batch has index %d", h.Last)
		}
		k.meta.Header = h
		return nil
	}
	_, err = ReadStream(r, head, func(rec Record) error {
		rec.Name, held = keep(held, rec.Name)
		rec.State, held = keep(held, rec.State)
		if batch = append(batch, rec); len(batch) == cap(batch) || len(held) >= steps.bytes {
			return put()
		}
		return nil
	})
	if err == nil {
		err = put()
	}
	return err
}

// keep appends b to held and returns its copy there.
func keep(held, b []byte) (kept, grown []byte) {
	n := len(held)
	held = append(held, b...)
	return held[n:len(held):len(held)], held
}

func (k *Sink) newPath() string { return filepath.Join(k.s.dir, newName) }

// finish waits for the new file, and puts it in place unless the node has moved past it meanwhile.
func (k *Sink) finish() error {
	defer k.s.installed(k)
	k.pipe.Close()
	err := <-k.built
	if err == nil {
		Failpoint("install.built")
		err = k.s.disk.sync(k.db) // the rest of it, while others may still write
		k.s.moved()
	}
	if err != nil {
		k.discard()
		return fmt.Errorf("install snapshot %s: %w", k.ID(), err)
	}
	k.s.turn.Lock() // a local snapshot between Commit and Release ends first
	defer k.s.turn.Unlock()
	return k.s.replace(k)
}

// replace makes the file that k built the file of the store, unless that has the same snapshot already.
func (s *Store) replace(k *Sink) error {
	replaced, err := s.swap(k)
	if err == nil && replaced {
		if fn := s.options().OnInstall; fn != nil {
			err = fn(k.meta.Index, k.meta.Term)
		}
		Failpoint("install.hooked")
	}
	if err != nil {
		return fmt.Errorf("install snapshot %s: %w", k.ID(), err)
	}
	return nil
}

func (s *Store) swap(k *Sink) (replaced bool, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	defer k.discard() // unless it was renamed
	same, err := s.admit(&k.meta.Meta)
	if same || err != nil {
		return false, err
	}
	if err := s.broken(); err != nil {
		return false, err
	}
	local := s.newestLocal()
	k.meta.version = s.version()
	put := func(tx *bolt.Tx) error { return putSnapshot(tx, k.meta, local) }
	if _, err := update(k.newPath(), k.db, put); err != nil {
		return false, err
	}
	if err := settle(s.disk, k.db); err != nil {
		return false, err
	}
	s.moved()
	Failpoint("install.synced")
	renamed, err := adopt(s.disk, s.dir, "install")
	if !renamed {
		return false, err
	}
	if err != nil {
		s.fail(err) // the directory has the new file, the disk perhaps not
	}
	s.mu.Lock()
	old := s.cur
	s.cur, s.meta, s.local = &file{db: k.db, refs: 1}, k.meta, local
	s.mu.Unlock()
	k.db = nil
	Failpoint("install.swapped")
	return true, errors.Join(err, s.unref(old))
}

// abandon ends an install that is not in place.
func (k *Sink) abandon(why error) {
	k.pipe.CloseWithError(why)
	<-k.built
	k.discard()
	k.s.installed(k)
}

func (k *Sink) discard() {
	if k.db != nil {
		discard(k.db, k.newPath())
		k.db = nil
	}
}

func (s *Store) installed(k *Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.installing == k {
		s.installing = nil
	}
}
