package cluster

import "fmt"

// logEnds are the indexes of the first and of the last entry; 0 and 0: there is none.
//
// They are kept in memory. Who reads in bbolt waits for a write that is stuck in the
// disk, and the ends are asked for by those who must not wait: status, chores, and
// the peer port, where everything that comes after the question would wait too.
type logEnds struct{ first, last uint64 }

// FirstIndex implements raft.LogStore.
func (s *logStore) FirstIndex() (uint64, error) {
	e, err := s.bounds()
	return e.first, err
}

// LastIndex implements raft.LogStore.
func (s *logStore) LastIndex() (uint64, error) {
	e, err := s.bounds()
	return e.last, err
}

func (s *logStore) bounds() (logEnds, error) {
	if err := s.disk.failed(); err != nil {
		return logEnds{}, err
	}
	if e := s.ends.Load(); e != nil {
		return *e, nil
	}
	return s.measure()
}

// measure reads the ends, after each change of the log.
func (s *logStore) measure() (logEnds, error) {
	s.measuring.Lock() // an older reading must not replace a newer one
	defer s.measuring.Unlock()
	first, err := s.file.FirstIndex()
	var last uint64
	if err == nil {
		last, err = s.file.LastIndex()
	}
	if err != nil {
		return logEnds{}, s.disk.fail(fmt.Errorf("read log %s: %w", s.path, err))
	}
	e := logEnds{first, last}
	s.ends.Store(&e)
	return e, nil
}
