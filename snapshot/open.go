package snapshot

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// Open returns the snapshot with that id, which must be the current one, as a canonical stream. It reads and verifies the whole file,
// so that the size it announces is exact and no damaged file is begun to be sent.
func (s *Store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	r, err := s.open()
	if err != nil {
		return nil, nil, fmt.Errorf("open snapshot %s: %w", id, err)
	}
	if r.meta.id() != id {
		r.Close()
		return nil, nil, fmt.Errorf("open snapshot %s: %w: the file has %s", id, ErrNoSnapshot, r.meta.id())
	}
	m := r.Meta()
	return m.raft(r.size), r, nil
}

// open returns a reader of the newest snapshot.
func (s *Store) open() (*Reader, error) {
	f, err := s.ref()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	r := &Reader{s: s, f: f, opened: now, used: now, enc: encoder{version: s.version()}}
	if err := r.begin(); err != nil {
		r.end(err)
		return nil, err
	}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.readers[r] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		r.end(ErrClosed)
		return nil, fmt.Errorf("%s is %w", s.Path(), ErrClosed)
	}
	r.mu.Lock()
	r.timer = time.AfterFunc(s.readerIdle, r.watch)
	r.mu.Unlock()
	return r, nil
}

// begin starts the read transaction, verifies the file and counts the bytes of the stream. What the transaction sees counts, not what
// the store remembers: a snapshot may have been committed in between.
func (r *Reader) begin() (err error) {
	if r.tx, err = r.f.db.Begin(false); err != nil {
		return err
	}
	return guarded(r.s.Path(), func() error {
		if r.meta, err = readMeta(r.s.Path(), r.tx); err != nil {
			return err
		}
		if r.meta.Index == 0 {
			return fmt.Errorf("%w in %s", ErrNoSnapshot, r.s.Path())
		}
		r.walk = walk{path: r.s.Path(), moved: r.s.moved, cursor: r.tx.Bucket(bucketRecords).Cursor()}
		r.size = headSize + trailerSize
		var seen tally
		for name, v := r.cursor.First(); name != nil; name, v = r.cursor.Next() {
			x, ok := decodeValue(name, v)
			if !ok {
				return damagedRecord(r.s.Path(), name)
			}
			if seen.add(x.crc); seen.records%1024 == 0 {
				r.s.moved()
			}
			if x.expiry > r.meta.T {
				r.size += x.streamSize(name)
			}
		}
		if err := seen.check(r.s.Path(), &r.meta); err != nil {
			return err
		}
		r.name, r.value = r.cursor.First()
		return nil
	})
}

// enter takes mu for a use of the reader, unless it has ended or is used otherwise.
func (r *Reader) enter(use int) error {
	r.mu.Lock()
	if r.err == nil && r.use != unused && r.use != use {
		r.mu.Unlock()
		return errors.New("snapshot reader: Each and Read on one reader")
	}
	if r.err != nil {
		defer r.mu.Unlock()
		return r.err
	}
	r.use, r.used = use, time.Now()
	return nil
}

// done notes that the reader has nothing more to give and returns err. The caller holds mu.
func (r *Reader) done(err error) error {
	r.err = err
	if err == nil {
		r.err = io.EOF
	}
	r.release()
	return err
}

// Close ends the reader. It may be called more than once.
func (r *Reader) Close() error {
	r.end(ErrClosed)
	return nil
}

func (r *Reader) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = fmt.Errorf("read snapshot %s: %w", r.meta.id(), why)
	}
	r.release()
}

// release gives transaction and file back. The caller holds mu.
func (r *Reader) release() {
	if r.f == nil {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.tx != nil {
		_ = r.tx.Rollback()
	}
	_ = r.s.unref(r.f)
	r.s.mu.Lock()
	delete(r.s.readers, r)
	r.s.mu.Unlock()
	r.f, r.tx, r.walk, r.out = nil, nil, walk{}, nil
}

// watch ends a reader that was idle or open for too long.
func (r *Reader) watch() {
	r.mu.Lock()
	now := time.Now()
	left := min(r.s.readerIdle-now.Sub(r.used), r.s.readerLife-now.Sub(r.opened))
	if r.err == nil && left > 0 {
		r.timer.Reset(left)
	}
	r.mu.Unlock()
	if left <= 0 {
		r.end(ErrExpired)
	}
}
