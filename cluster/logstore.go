package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

const (
	deleteChunk = 1024 // entries deleted in one transaction, so that appends get in between
	maxTrailing = 10240
	minTrailing = 1024
)

// logStore is raft's log: a file with a checksum on every entry, a stop at the
// first failure, and truncation in steps.
type logStore struct {
	file    logFile
	path    string
	step    uint64 // entries that are deleted at once, 0: deleteChunk
	disk    *disk
	onEntry func(at int64, term uint64) // an entry of ours of the current term, with its cluster time, reached the store

	onConfiguration func(index uint64, c raft.Configuration) // one of raft's did; may be nil

	at      func(data []byte) (int64, bool) // the time of an entry
	command atomic.Uint64                   // no command in the log has a higher index
	term    newestTerm
	marks   marks

	readable func(data []byte) error // why an entry is not read here; nil: every one is
	versions logVersions

	configuration uint64 // index of the newest configuration that scan found, 0: none

	ends      atomic.Pointer[logEnds]
	measuring sync.Mutex

	mu    sync.Mutex
	sizes [maxTrailing]uint32 // bytes of the newest entries, by index modulo length

	written atomic.Uint64 // bytes of entries since the start
}

var _ raft.LogStore = (*logStore)(nil)
var _ raft.MonotonicLogStore = (*logStore)(nil)

// GetLog implements raft.LogStore.
func (s *logStore) GetLog(index uint64, l *raft.Log) error {
	err := s.disk.failed()
	if err == nil {
		err = s.read(index, l)
	}
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		s.disk.failAndExit(damagedLog(s.path, err))
	}
	return err
}

// read gets and checks one entry.
func (s *logStore) read(index uint64, l *raft.Log) error {
	*l = raft.Log{}
	return s.file.GetLog(index, l)
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	if err := s.checkVersions(logs); err != nil {
		return s.disk.fail(err)
	}
	if err := s.disk.write(func() error { return s.file.StoreLogs(logs) }); err != nil {
		return s.disk.fail(fmt.Errorf("write log %s: %w", s.path, err))
	}
	s.stored(logs)
	_, err := s.measure()
	return err
}

// stored takes note of entries that are on disk.
func (s *logStore) stored(logs []*raft.Log) {
	s.mu.Lock()
	for _, l := range logs {
		s.sizes[l.Index%maxTrailing] = uint32(len(l.Data))
		s.written.Add(uint64(len(l.Data)))
	}
	s.mu.Unlock()
	if n := len(logs); n > 0 {
		s.marks.update(func(m *mark) { m.index, m.term = logs[n-1].Index, logs[n-1].Term })
	}
	current := s.marks.get().current
	for _, l := range logs {
		s.term.note(l.Index, l.Term)
		if l.Type == raft.LogConfiguration && s.onConfiguration != nil {
			s.onConfiguration(l.Index, raft.DecodeConfiguration(l.Data))
		}
		if l.Type != raft.LogCommand {
			continue
		}
		s.command.Store(l.Index)
		s.versions.note(l)
		// What a leader sends of an earlier term was decided at a time that nobody knows.
		if at, ok := s.at(l.Data); ok && l.Term == current && s.onEntry != nil {
			s.onEntry(at, l.Term)
		}
	}
}

// DeleteRange implements raft.LogStore. What it leaves when it is interrupted is
// contiguous: a prefix goes from its low end on, a suffix from its high end.
func (s *logStore) DeleteRange(lo, hi uint64) error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	if lo, hi = max(lo, first), min(hi, last); last == 0 || lo > hi {
		return nil
	}
	step := func(a, b uint64) error {
		if err := s.disk.truncate(func() error { return s.file.DeleteRange(a, b) }); err != nil {
			return s.disk.fail(fmt.Errorf("truncate log %s: %w", s.path, err))
		}
		_, err := s.measure()
		return err
	}
	chunk := cmp.Or(s.step, deleteChunk)
	if hi < last {
		for ; lo <= hi; lo += chunk {
			if err := step(lo, min(hi, lo+chunk-1)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.cut(lo, first); err != nil {
		return err
	}
	for end := hi; end >= lo; {
		from := lo
		if end-lo >= chunk {
			from = end - chunk + 1
		}
		if err := step(from, end); err != nil {
			return err
		}
		end = from - 1
	}
	s.term.cut(lo)
	s.versions.cut(lo)
	if s.command.Load() >= lo {
		s.command.Store(lo - 1) // at least as high as the newest one that is left
	}
	return nil
}

// cut begins another incarnation of the log, before its entries from lo on are
// deleted: it may end earlier than noted from then on.
func (s *logStore) cut(lo, first uint64) error {
	var end raft.Log // stays zero if nothing is left, or the entry cannot be read: its reader will tell
	if lo > first {
		_ = s.read(lo-1, &end)
		end.Index = lo - 1
	}
	return s.incarnate(func(m *mark) { m.index, m.term = end.Index, end.Term })
}

// incarnate counts one incarnation more, on disk first, and changes the mark with it.
func (s *logStore) incarnate(change func(*mark)) error {
	next := s.marks.get()
	next.incarnation++
	key := []byte(incarnationKey)
	err := s.disk.write(func() error { return s.file.Set(key, sealValue(key, next.appendIncarnation(nil))) })
	if err != nil {
		return s.disk.fail(fmt.Errorf("write %s to %s: %w", key, s.path, err))
	}
	s.marks.update(func(m *mark) {
		m.incarnation = next.incarnation
		change(m)
	})
	return nil
}

// IsMonotonic implements raft.MonotonicLogStore. True would make raft throw the
// whole log away after an installed snapshot, acknowledged entries above it
// included.
func (s *logStore) IsMonotonic() bool { return false }

// trailing is how many of the newest entries fit into so many bytes, within the
// bounds that a slow follower (floor) and the time of a truncation ask for.
func (s *logStore) trailing(budget int64, floor, first, last uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := uint64(0)
	for n < maxTrailing && n < last && last-n >= first {
		if budget -= int64(s.sizes[(last-n)%maxTrailing]); budget < 0 {
			break
		}
		n++
	}
	if last == 0 || n == last-first+1 {
		return maxTrailing // the whole log fits
	}
	return max(n, floor)
}
