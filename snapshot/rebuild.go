package snapshot

import (
	"errors"
	"fmt"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// nextName is the file of a large local snapshot while it is built; whatever has this name at start is what a crash left.
const nextName = "snapshot.next"

// rebuild writes a local snapshot as a new file: the records of the one that is there, and those of the runs over them. Until the new
// one is renamed over it, the old one stays as it is, and serves its readers even longer. Like an install this takes memory for a
// few thousand records only; a transaction takes some KiB for each page that it touches, which are all when many records change.
//
// The caller holds turn, so nobody else replaces the file or changes its records meanwhile. Receipts and notes go on being written.
func (s *Store) rebuild(m *fileMeta, r *runs) error {
	s.building.Lock()
	defer s.building.Unlock()
	if err := errors.Join(s.broken(), s.stopped()); err != nil {
		return err
	}
	f, err := s.ref()
	if err != nil {
		return err
	}
	defer s.unref(f)
	path := filepath.Join(s.dir, nextName)
	b, err := s.build(path, "rebuild", m)
	if err != nil {
		return err
	}
	Failpoint("rebuild.begin")
	var db *bolt.DB
	if err = b.fill(f, r); err == nil {
		Failpoint("rebuild.built")
		err = b.sync() // while receipts may still be written
	}
	if err = s.distrust(err); err == nil {
		db, err = b.open()
	}
	renamed := false
	if err == nil {
		s.writing.Lock()
		renamed, err = s.adoptBuilt("rebuild", path, db, m)
		s.writing.Unlock()
		err = s.distrust(err)
	}
	if !renamed {
		b.discard(db)
	}
	return err
}

// fill writes the records of the file before, and those of the runs over them.
func (b *builder) fill(old *file, r *runs) error {
	s := b.s
	tx, err := old.db.Begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var from *merge
	if err := guarded(s.Path(), func() error {
		was, err := readMeta(s.Path(), tx)
		if err != nil {
			return err
		}
		base := walk{path: s.Path(), moved: s.moved, cursor: tx.Bucket(bucketRecords).Cursor()}
		base.name, base.value = base.cursor.First()
		from, err = newMerge(base, &was, r, b.m.T)
		return err
	}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		e, err := from.next()
		if err == nil && n%1024 == 0 {
			err = s.stopped()
		}
		switch {
		case err != nil:
			return err
		case e.name == nil:
			return b.end()
		}
		if err := b.put(e.name, e.raw, e.crc); err != nil {
			return err
		}
	}
}

// distrust remembers a disk that failed: as after a transaction that did, nothing is written any more. A full disk is none that failed.
func (s *Store) distrust(err error) error {
	if failedDisk(err) {
		s.fail(err)
	}
	return err
}

// stopped says that work that takes long is to be given up.
func (s *Store) stopped() error {
	s.mu.Lock()
	closed, stopping := s.closed, s.o.Stopping
	s.mu.Unlock()
	if closed || stopping != nil && stopping() {
		return fmt.Errorf("%s is %w", s.Path(), ErrClosed)
	}
	return nil
}
