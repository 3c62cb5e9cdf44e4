package snapshot

import (
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// write runs fn in one synced transaction of the current file. The caller holds writing.
func (s *Store) write(fn func(*bolt.Tx) error) error {
	if err := s.broken(); err != nil {
		return err
	}
	f, err := s.ref()
	if err != nil {
		return err
	}
	defer s.unref(f)
	sure, err := update(s.Path(), f.db, fn)
	if !sure {
		s.fail(err)
	}
	return err
}

// fail remembers a write with an unknown outcome: all later ones are refused.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// Failed is the write whose outcome is unknown, nil if there was none. After it nothing is written any more; the way on is a restart.
func (s *Store) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *Store) broken() error {
	if err := s.Failed(); err != nil {
		return fmt.Errorf("an earlier write failed, restart the node: %w", err)
	}
	return nil
}

// putSnapshot writes what a snapshot has beside its records.
func putSnapshot(tx *bolt.Tx, m fileMeta, l local) error {
	if err := tx.Bucket(bucketMeta).Put(keyMeta, appendMeta(nil, m)); err != nil {
		return err
	}
	return putLocal(tx, l)
}

// adoptBuilt completes the file at path, db, which has its records, with what a snapshot has beside them, and makes it the file of the
// store. The caller holds writing, and discards the file if it was not renamed.
func (s *Store) adoptBuilt(point, path string, db *bolt.DB, m *fileMeta) (renamed bool, err error) {
	local := s.newestLocal()
	m.version = s.version()
	if _, err := update(path, db, func(tx *bolt.Tx) error { return putSnapshot(tx, *m, local) }); err != nil {
		return false, err
	}
	if err := settle(s.disk, db); err != nil {
		return false, err
	}
	s.moved()
	Failpoint(point + ".synced")
	gone, _ := os.OpenFile(s.Path(), os.O_RDWR, 0) // to shrink it; if it cannot be had, it goes at once
	renamed, err = adopt(s.disk, s.dir, path, point)
	if err != nil {
		gone.Close() // the disk may have the old file yet
		gone = nil
	}
	if !renamed {
		return false, err
	}
	if err != nil {
		s.fail(err) // the directory has the new file, the disk perhaps not
	}
	s.mu.Lock()
	old := s.cur
	old.gone = gone
	s.cur, s.meta, s.local = &file{db: db, refs: 1}, *m, local
	s.mu.Unlock()
	Failpoint(point + ".swapped")
	return true, errors.Join(err, s.unref(old))
}
