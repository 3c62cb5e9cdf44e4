package snapshot

import (
	"bytes"

	bolt "go.etcd.io/bbolt"
)

// local is what the node keeps in the file for itself. It goes with each snapshot into the file, and from one file into the next, and is
// never in a stream.
type local struct {
	receipt *Receipt // nil: none
	note    []byte   // empty: none
}

// Receipt returns the newest receipt that is in the file.
func (s *Store) Receipt() (Receipt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local.receipt == nil {
		return Receipt{}, false
	}
	return *s.local.receipt, true
}

// Note returns the newest note that is in the file, empty if there is none.
func (s *Store) Note() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.local.note)
}

// SaveReceipt writes a receipt, and the newest note with it, in a synced transaction of its own.
func (s *Store) SaveReceipt(r Receipt) error { return s.saveLocal(&r) }

// SaveLocal writes the newest receipt and note in a synced transaction of its own.
func (s *Store) SaveLocal() error { return s.saveLocal(nil) }

// saveLocal writes what is local, with r as the receipt unless it is nil.
func (s *Store) saveLocal(r *Receipt) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	l := s.newestLocal()
	if r != nil {
		l.receipt = r
	}
	if err := s.write(func(tx *bolt.Tx) error { return putLocal(tx, l) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.local = l
	return nil
}

// newestLocal is what goes into the file next: what the node knows, or else what the file had. Notes are written in the order in which
// they were asked for, so the caller holds writing.
func (s *Store) newestLocal() local {
	s.mu.Lock()
	l, o := s.local, s.o
	s.mu.Unlock()
	if o.Receipt != nil {
		if r, ok := o.Receipt(); ok {
			l.receipt = &r
		}
	}
	if o.Note != nil {
		if note := o.Note(); len(note) > 0 {
			l.note = note
		}
	}
	return l
}

func putLocal(tx *bolt.Tx, l local) error {
	b := tx.Bucket(bucketLocal)
	if l.receipt != nil {
		if err := b.Put(keyReceipt, appendReceipt(nil, *l.receipt)); err != nil {
			return err
		}
	}
	if len(l.note) > 0 {
		return b.Put(keyNote, appendNote(nil, l.note))
	}
	return nil
}

func readLocal(path string, tx *bolt.Tx) (l local, err error) {
	b := tx.Bucket(bucketLocal)
	if v := b.Get(keyReceipt); v != nil {
		r, err := decodeReceipt(path, v)
		if err != nil {
			return l, err
		}
		l.receipt = &r
	}
	if v := b.Get(keyNote); v != nil {
		l.note, err = decodeNote(path, v)
	}
	return l, err
}
