package snapshot

import (
	"fmt"
	"io"
	"path/filepath"
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

// build writes the records of the stream into the new file.
func (k *Sink) build(r io.Reader) error {
	b, err := k.s.build(k.newPath(), "install", &k.meta)
	if err != nil {
		return err
	}
	k.file = b
	Failpoint("install.begin")
	var value []byte
	head := func(h Header) error {
		if h.Last > k.meta.Index {
			return fmt.Errorf("its last batch has index %d", h.Last)
		}
		k.meta.Header = h
		return nil
	}
	_, err = ReadStream(r, head, func(rec Record) error {
		if err := checkRecord(rec.Name, rec.State); err != nil {
			return err
		}
		var crc uint32
		value, crc = appendValue(value[:0], rec.Name, rec.State, rec.Expiry)
		return b.put(rec.Name, value, crc)
	})
	if err == nil {
		err = b.end()
	}
	return err
}

func (k *Sink) newPath() string { return filepath.Join(k.s.dir, newName) }

// finish waits for the new file, and puts it in place unless the node has moved past it meanwhile.
func (k *Sink) finish() error {
	defer k.s.installed(k)
	k.pipe.Close()
	err := <-k.built
	if err == nil {
		Failpoint("install.built")
		err = k.file.sync() // while others may still write
	}
	if err == nil {
		k.db, err = k.file.open()
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
	replaced, err = s.adoptBuilt("install", k.newPath(), k.db, &k.meta)
	if replaced {
		k.file = nil
	}
	return replaced, err
}

// abandon ends an install that is not in place.
func (k *Sink) abandon(why error) {
	k.pipe.CloseWithError(why)
	<-k.built
	k.discard()
	k.s.installed(k)
}

func (k *Sink) discard() {
	if k.file != nil {
		k.file.discard(k.db)
		k.file = nil
	}
}

func (s *Store) installed(k *Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.installing == k {
		s.installing = nil
	}
}
