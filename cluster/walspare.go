package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	walSpareName = "spare" // in the directory of a wal
	firstSegment = 1 << 20 // size of a segment that is made while an append waits for it
	zerosAtOnce  = 1 << 20 // written before they are synced, so that no append's sync waits for more
)

// walSpare is the file of the next segment, made beside the appends while the newest
// segment is filled.
//
// It is written full of zeros, not only set aside: where a file system has a journal, the
// first write to a block that was set aside goes through it, and a synced append takes
// three times as long.
type walSpare struct {
	dir  string
	all  sync.WaitGroup
	stop atomic.Bool

	mu     sync.Mutex
	making bool
	there  bool
	tried  bool // for the segment that is the newest one
}

// want makes the file, in the background, unless it is there, is being made, or could not be made for this segment.
func (s *walSpare) want(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.making || s.there || s.tried {
		return
	}
	s.making, s.tried = true, true
	s.all.Go(func() {
		path := filepath.Join(s.dir, walSpareName)
		err := zeroFile(path, size, &s.stop)
		if err != nil {
			os.Remove(path) // the next segment is made without it, and what fails then is told
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.making, s.there = false, err == nil
	})
}

// take makes the file the next segment, if it is there, and says whether it was.
func (s *walSpare) take(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.there && os.Rename(filepath.Join(s.dir, walSpareName), path) == nil
	s.there, s.tried = false, false
	return there
}

// close stops, waits and removes the file.
func (s *walSpare) close() {
	s.stop.Store(true)
	s.all.Wait()
	if s.there {
		os.Remove(filepath.Join(s.dir, walSpareName)) // a start does it otherwise
	}
}

// zeroFile makes a file of zeros that are on the disk.
func zeroFile(path string, size int64, stop *atomic.Bool) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = writeZeros(f, size, stop); err != nil {
		err = fmt.Errorf("make %s: %w", path, err)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

func writeZeros(f *os.File, size int64, stop *atomic.Bool) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size) // in one piece; and a full disk is told at once
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	zeros := make([]byte, min(size, zerosAtOnce))
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if stop.Load() {
			return os.ErrClosed
		}
		if _, err := f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
		if err := (walFile{File: f}).Sync(); err != nil {
			return err
		}
	}
	return nil
}
