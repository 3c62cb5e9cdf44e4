package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	walSpareName = "spare"   // in the directory of a wal
	firstSegment = 1 << 20   // size of a segment that is made while an append waits for it
	zerosAtOnce  = 128 << 10 // written beside the appends; more of them make an append's sync wait
	zerosAhead   = 2         // bytes of zeros for each byte that is appended
)

// walSpare is the file of the next segment, made beside the appends, and as fast as the
// newest segment is filled: it is whole when half of that is written.
//
// It is written full of zeros, not only set aside: where a file system has a journal, the
// first write to a block that was set aside goes through it, and a synced append takes
// three times as long.
type walSpare struct {
	dir    string
	size   int64
	broken func(error)
	all    sync.WaitGroup

	mu      sync.Mutex
	f       *os.File // nil until the first zeros
	at      int64    // end of the zeros
	goal    int64    // where that should be
	running bool
	there   bool // whole, and on the disk
	failed  bool // not for the segment that is the newest one
}

// appended has more of the file made, in the background, after an append of n bytes.
func (s *walSpare) appended(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goal += zerosAhead * int64(n)
	if s.running || s.there || s.failed || !s.behind() {
		return
	}
	s.running = true
	s.all.Go(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for s.behind() && !s.failed {
			s.mu.Unlock()
			err := s.more()
			if errors.Is(err, unix.EIO) || errors.Is(err, unix.EROFS) { // the disk fails; others are told when a segment cannot be made without it
				s.broken(err)
			}
			s.mu.Lock()
			s.failed = err != nil
			s.there = err == nil && s.at == s.size
		}
		s.running = false
		if s.failed {
			s.drop() // the next segment is made without it
		}
	})
}

// behind says that there is something to write.
func (s *walSpare) behind() bool {
	return s.at < s.size && s.goal >= min(s.at+zerosAtOnce, s.size)
}

// more writes some zeros, and makes the file the first time. Only the last ones are synced: the
// others are on their way, and no append waits for them.
func (s *walSpare) more() (err error) {
	if s.f == nil {
		if s.f, err = createSegment(filepath.Join(s.dir, walSpareName), s.size); err != nil {
			return err
		}
	}
	n, err := s.f.WriteAt(make([]byte, min(zerosAtOnce, s.size-s.at)), s.at)
	if err != nil {
		return err
	}
	if s.at += int64(n); s.at == s.size {
		return s.f.Sync()
	}
	err = unix.SyncFileRange(int(s.f.Fd()), s.at-int64(n), int64(n), unix.SYNC_FILE_RANGE_WRITE)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	return err
}

// take makes the file the next segment, if it is there, and says whether it was.
func (s *walSpare) take(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = false
	if !s.there {
		return false
	}
	taken := os.Rename(filepath.Join(s.dir, walSpareName), path) == nil
	s.drop()
	return taken
}

// drop closes and removes the file.
func (s *walSpare) drop() {
	if s.f != nil {
		s.f.Close()
		os.Remove(s.f.Name()) // a start does it otherwise
	}
	s.f, s.at, s.goal, s.there = nil, 0, 0, false
}

// discard removes the file, when nothing is being written to it.
func (s *walSpare) discard() {
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

// createSegment makes the file of a segment and finds room for all of it.
func createSegment(path string, size int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = nil // the zeros will tell
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	return f, nil
}

// zeroSegment makes the file of a segment, of zeros that are on the disk.
func zeroSegment(path string, size int64) error {
	f, err := createSegment(path, size)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, size), 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(path)
		return fmt.Errorf("make %s: %w", path, err)
	}
	return nil
}
