package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"limitd/snapshot"
)

const (
	logName = "raft.db"
	// logMmap is address space, not memory. While the file fits, a growing log
	// never waits for its readers.
	logMmap     = 16 << 30
	deleteChunk = 1024 // entries deleted in one transaction, so that appends get in between
	maxTrailing = 10240
	minTrailing = 1024
)

// boltFile is what log and stable store need of raft-boltdb. Tests break it.
type boltFile interface {
	raft.LogStore
	Get(key []byte) ([]byte, error)
	Set(key, value []byte) error
	Close() error
}

// logStore is raft's log: raft-boltdb with a checksum on every entry, a stop at
// the first failure, and truncation in steps.
type logStore struct {
	bolt    boltFile
	path    string
	disk    *disk
	onEntry func(at int64) // an entry of ours, with its cluster time, reached the store

	at      func(data []byte) (int64, bool) // the time of an entry
	command atomic.Uint64                   // no command in the log has a higher index

	configuration uint64 // index of the newest configuration that scan found, 0: none

	mu    sync.Mutex
	sizes [maxTrailing]uint32 // bytes of the newest entries, by index modulo length
}

var _ raft.LogStore = (*logStore)(nil)
var _ raft.MonotonicLogStore = (*logStore)(nil)

// openBolt opens the file that holds log and stable store.
func openBolt(dir string) (b *raftboltdb.BoltStore, path string, err error) {
	path = filepath.Join(dir, logName)
	defer func() {
		if r := recover(); r != nil { // bbolt panics on some damaged files
			err = damagedLog(path, fmt.Errorf("bbolt: %v", r))
		}
	}()
	if !absent(path) {
		if err := checkLogFile(path); err != nil {
			return nil, path, damagedLog(path, err)
		}
	}
	b, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: &bbolt.Options{
		Timeout:         time.Second,
		FreelistType:    bbolt.FreelistMapType,
		NoFreelistSync:  true,
		InitialMmapSize: logMmap,
	}})
	if err != nil {
		return nil, path, damagedLog(path, err)
	}
	return b, path, syncDir(dir)
}

// checkLogFile looks at a log before raft-boltdb opens it, which makes what is
// missing: a log whose bucket lost its name would come back empty. Only a file
// that no node has used yet, left by a crash, may lack its buckets.
func checkLogFile(path string) error {
	if err := snapshot.CheckBolt(path); err != nil {
		return err
	}
	if absent(filepath.Join(filepath.Dir(path), identityFile)) {
		return nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		for _, name := range []string{"logs", "conf"} {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("it has no bucket %q", name)
			}
		}
		return nil
	})
}

// damagedLog is the refusal to go on with a log or a stable store that cannot be
// trusted: the node has forgotten what it acknowledged or whom it voted for.
func damagedLog(path string, err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("open raft log %s: another process has it open: stop that process, or give this node a directory of its own", path)
	}
	return fmt.Errorf("raft log %s is damaged: %w; this node may have forgotten entries and votes that others count on, so it does not start: "+
		"remove it from the cluster, move its data directory away, and let it join again", path, err)
}

func (s *logStore) FirstIndex() (uint64, error) { return s.bound(s.bolt.FirstIndex) }
func (s *logStore) LastIndex() (uint64, error)  { return s.bound(s.bolt.LastIndex) }

func (s *logStore) bound(f func() (uint64, error)) (uint64, error) {
	if err := s.disk.failed(); err != nil {
		return 0, err
	}
	i, err := f()
	if err != nil {
		return 0, s.disk.fail(fmt.Errorf("read log %s: %w", s.path, err))
	}
	return i, nil
}

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
	if err := s.bolt.GetLog(index, l); err != nil {
		return err
	}
	return checkEntry(index, l)
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	copies := make([]raft.Log, len(logs))
	rows := make([]*raft.Log, len(logs))
	sums := make([]byte, 0, sumLen*len(logs))
	for i, l := range logs {
		copies[i], rows[i] = *l, &copies[i]
		sums = appendEntrySum(sums, l)
		copies[i].Extensions = sums[len(sums)-sumLen:]
	}
	if err := s.disk.write(func() error { return s.bolt.StoreLogs(rows) }); err != nil {
		return s.disk.fail(fmt.Errorf("write log %s: %w", s.path, err))
	}
	s.stored(logs)
	return nil
}

// stored takes note of entries that are on disk.
func (s *logStore) stored(logs []*raft.Log) {
	s.mu.Lock()
	for _, l := range logs {
		s.sizes[l.Index%maxTrailing] = uint32(len(l.Data))
	}
	s.mu.Unlock()
	for _, l := range logs {
		if l.Type != raft.LogCommand {
			continue
		}
		s.command.Store(l.Index)
		if at, ok := s.at(l.Data); ok && s.onEntry != nil {
			s.onEntry(at)
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
		if err := s.disk.truncate(func() error { return s.bolt.DeleteRange(a, b) }); err != nil {
			return s.disk.fail(fmt.Errorf("truncate log %s: %w", s.path, err))
		}
		return nil
	}
	if hi < last {
		for ; lo <= hi; lo += deleteChunk {
			if err := step(lo, min(hi, lo+deleteChunk-1)); err != nil {
				return err
			}
		}
		return nil
	}
	for end := hi; end >= lo; {
		from := lo
		if end-lo >= deleteChunk {
			from = end - deleteChunk + 1
		}
		if err := step(from, end); err != nil {
			return err
		}
		end = from - 1
	}
	if s.command.Load() >= lo {
		s.command.Store(lo - 1) // at least as high as the newest one that is left
	}
	return nil
}

// IsMonotonic implements raft.MonotonicLogStore. True would make raft throw the
// whole log away after an installed snapshot, acknowledged entries above it
// included.
func (s *logStore) IsMonotonic() bool { return false }

// scan reads the whole log once: its entries must follow one another and match
// their checksums.
func (s *logStore) scan() error {
	first, err := s.bolt.FirstIndex()
	if err != nil {
		return damagedLog(s.path, err)
	}
	last, err := s.bolt.LastIndex()
	if err != nil {
		return damagedLog(s.path, err)
	}
	if last == 0 {
		return nil
	}
	for i := first; i <= last; i++ {
		var l raft.Log
		if err := s.read(i, &l); errors.Is(err, raft.ErrLogNotFound) {
			return damagedLog(s.path, fmt.Errorf("entry %d is missing between %d and %d", i, first, last))
		} else if err != nil {
			return damagedLog(s.path, err)
		}
		s.sizes[i%maxTrailing] = uint32(len(l.Data))
		switch l.Type {
		case raft.LogCommand:
			s.command.Store(i)
		case raft.LogConfiguration:
			s.configuration = i
		}
	}
	return nil
}

// trailing is how many of the newest entries fit into so many bytes, within the
// bounds that a slow follower and the time of a truncation ask for.
func (s *logStore) trailing(budget int64, first, last uint64) uint64 {
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
	return max(n, minTrailing)
}

// absent says that a file is not there or holds nothing.
func absent(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Size() == 0 || errors.Is(err, os.ErrNotExist)
}
