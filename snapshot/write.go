package snapshot

import (
	"fmt"

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
	if err != nil {
		err = fmt.Errorf("write %s: %w", s.Path(), err)
		if !sure {
			s.fail(err)
		}
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

func (s *Store) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return fmt.Errorf("an earlier write failed, restart the node: %w", s.failed)
	}
	return nil
}

// Receipt returns the newest receipt that is in the file.
func (s *Store) Receipt() (Receipt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.receipt == nil {
		return Receipt{}, false
	}
	return *s.receipt, true
}

// SaveReceipt writes a receipt in a synced transaction of its own.
func (s *Store) SaveReceipt(r Receipt) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.write(func(tx *bolt.Tx) error { return putReceipt(tx, r) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipt = &r
	return nil
}

// newestReceipt is what goes with a snapshot into the file: what the node knows, or else what the file had.
func (s *Store) newestReceipt() *Receipt {
	if fn := s.options().Receipt; fn != nil {
		if r, ok := fn(); ok {
			return &r
		}
	}
	if r, ok := s.Receipt(); ok {
		return &r
	}
	return nil
}

func putReceipt(tx *bolt.Tx, r Receipt) error {
	return tx.Bucket(bucketLocal).Put(keyReceipt, appendReceipt(nil, r))
}

// putSnapshot writes what a snapshot has beside its records.
func putSnapshot(tx *bolt.Tx, m fileMeta, r *Receipt) error {
	if err := tx.Bucket(bucketMeta).Put(keyMeta, appendMeta(nil, m)); err != nil {
		return err
	}
	if r == nil {
		return nil
	}
	return putReceipt(tx, *r)
}
