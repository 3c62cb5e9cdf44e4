package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"limitd/snapshot"
)

const (
	logName = "raft.db"
	// logMmap is address space, not memory. While the file fits, a growing log
	// never waits for its readers.
	logMmap = 16 << 30
)

// logFile is what log and stable store need of their file. Tests break it.
type logFile interface {
	raft.LogStore
	Get(key []byte) ([]byte, error)
	Set(key, value []byte) error
	Close() error
}

// createBolt makes the file without entries. It is made beside, so that it is
// whole as soon as it has its name, wherever a first start is killed.
func createBolt(dir string) error { return createBoltFile(dir, logName) }

func createBoltFile(dir, name string) error {
	path, next := filepath.Join(dir, name), filepath.Join(dir, name+".new")
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what an interrupted start left: %w", err)
	}
	db, err := openDB(next, false)
	if err == nil {
		err = errors.Join((&boltLog{db: db}).initialize(), db.Close())
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("create raft log %s: %w", path, err)
	}
	return nil
}

// openDB opens the bbolt file at path, or makes one.
func openDB(path string, readOnly bool) (*bbolt.DB, error) {
	return bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         time.Second,
		ReadOnly:        readOnly,
		FreelistType:    bbolt.FreelistMapType,
		NoFreelistSync:  true,
		InitialMmapSize: logMmap,
	})
}

// openBolt opens the file that holds log and stable store, and checks that it is
// whole.
func openBolt(path string) (*boltLog, error) { return openLogFile(path, false) }

func openLogFile(path string, readOnly bool) (b *boltLog, err error) {
	defer func() {
		if r := recover(); r != nil { // bbolt panics on some damaged files
			b, err = nil, damagedLog(path, fmt.Errorf("bbolt: %v", r))
		}
	}()
	if err := snapshot.CheckBolt(path); err != nil {
		return nil, damagedLog(path, err)
	}
	db, err := openDB(path, readOnly)
	if err != nil {
		return nil, damagedLog(path, err)
	}
	b = &boltLog{db: db}
	if err := b.load(); err != nil {
		return nil, damagedLog(path, errors.Join(err, db.Close()))
	}
	return b, nil
}

// scan reads the whole log once: its entries must follow one another and match
// their checksums.
func (s *logStore) scan() error {
	first, err := s.file.FirstIndex()
	if err != nil {
		return damagedLog(s.path, err)
	}
	last, err := s.file.LastIndex()
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
		s.term.note(i, l.Term)
		s.marks.index, s.marks.term = i, l.Term
		switch l.Type {
		case raft.LogCommand:
			s.command.Store(i)
			s.versions.note(&l)
		case raft.LogConfiguration:
			s.configuration = i
		}
	}
	return nil
}

// absent says that a file is not there or holds nothing.
func absent(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Size() == 0 && !fi.IsDir() || errors.Is(err, os.ErrNotExist)
}
