package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

var (
	_ raft.SnapshotStore = (*Store)(nil)
	_ raft.SnapshotSink  = (*Sink)(nil)
)

// Options of a store. All are optional. The functions are called with locks of the store held: of its methods they may call those that
// only tell what it has, and OnInstall may also call SaveReceipt, SaveLocal and Open.
type Options struct {
	// Applied is the newest index applied by the state machine, or on its way to it; installs older than it are refused.
	Applied func() uint64
	// OnInstall is called after the file of an install is in place and Meta tells of it, before raft hears of it. Its error is the
	// install's error; the file stays.
	OnInstall func(index, term uint64) error
	// Receipt is the newest receipt, written with each Commit and carried into each installed file.
	Receipt func() (Receipt, bool)
	// Note is what the node notes of its other files, opaque here. It is written and carried wherever a receipt is; empty: there is
	// nothing new.
	Note func() []byte
	// Writes is the version in which streams and the meta data of the file are written, 1 to Reads; nil: 1.
	Writes func() uint8
	// Progress is called whenever an install, a large local snapshot or a reader has moved on by a step that no working disk is long at:
	// at most some thousand records, or some MiB. It tells that all is well, however large the snapshot is. It may rest for a moment,
	// which paces the work.
	Progress func()
	// Stopping says that the node stops: a large local snapshot that is being written is given up.
	Stopping func() bool
	// MaxFileSize is the address space mapped at start, in bytes; 0: 64 GiB. A file that outgrows it still works, but a snapshot
	// may then wait for a reader.
	MaxFileSize int64
}

// Store implements raft.SnapshotStore over the file snapshot.db of a data directory. It holds at most one snapshot. All methods may
// be called from any goroutine.
type Store struct {
	dir  string
	mmap int64
	lock *os.File
	disk disk

	// turn is held by a local snapshot from Commit to Release, and by an install from its last check to its end. So the state
	// machine can tell, until Release, whether its snapshot is the file.
	turn sync.Mutex
	// writing orders receipts and snapshots with the replacement of the file. It is taken after turn.
	writing sync.Mutex
	saving  sync.Mutex // one SaveTo at a time
	// building is held while a local snapshot builds a new file, which takes turn before and writing at its end.
	building sync.Mutex
	// shrinking are the files that are being given back.
	shrinking sync.WaitGroup

	mu         sync.Mutex // for what is below; never held during I/O
	o          Options
	cur        *file
	meta       fileMeta
	local      local
	installing *Sink
	readers    map[*Reader]struct{}
	failed     error // a write whose outcome is unknown; there is no way on but a restart
	closed     bool

	readerIdle, readerLife time.Duration // how long a Reader may do nothing, and be open
	steps                  buildSteps
	pages                  int // that the transaction of a local snapshot may touch
}

// file is an open bbolt file. The store holds one reference to the current one and each reader one to its own.
type file struct {
	db   *bolt.DB
	refs int      // under Store.mu
	gone *os.File // the same file, once another one has its name
}

// OpenStore opens or creates the snapshot file of the data directory dir, which must exist, and locks the directory. What a crash
// left of an install is removed. Errors wrap ErrLocked, ErrDamaged (see SetAside), ErrVersion, or come from the system; they name the
// file. The records are checked when they are read, not here.
func OpenStore(dir string, o Options) (*Store, error) { return openStore(dir, o, realDisk) }

func openStore(dir string, o Options, d disk) (_ *Store, err error) {
	s := &Store{dir: dir, mmap: o.MaxFileSize, o: o, disk: d, readers: map[*Reader]struct{}{},
		readerIdle: time.Minute, readerLife: 30 * time.Minute, steps: defaultSteps(), pages: transactionPages}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	db, err := s.openFile()
	if err != nil {
		s.lock.Close()
		return nil, err
	}
	s.cur = &file{db: db, refs: 1}
	if err := s.load(); err != nil {
		db.Close()
		s.lock.Close()
		return nil, err
	}
	return s, nil
}

// openFile opens the file, after it made an empty one if there is none. An empty one is made beside, so that the file is whole as
// soon as it has its name.
func (s *Store) openFile() (*bolt.DB, error) {
	for _, left := range []string{newName, nextName, runsName} {
		if err := os.Remove(filepath.Join(s.dir, left)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("remove what an interrupted install or snapshot left: %w", err)
		}
	}
	next := filepath.Join(s.dir, newName)
	switch err := CheckBolt(s.Path()); {
	case err == nil:
		return openBolt(s.Path(), s.mmap)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	db, err := createBolt(next, s.mmap)
	if err != nil {
		return nil, err
	}
	Failpoint("create.built")
	if err = settle(s.disk, db); err == nil {
		Failpoint("create.synced")
		_, err = adopt(s.disk, s.dir, next, "create")
	}
	if err != nil {
		discard(db, next)
		return nil, fmt.Errorf("create %s: %w", s.Path(), err)
	}
	return db, nil
}

// load reads the meta data and what is local.
func (s *Store) load() error {
	return guarded(s.Path(), func() error {
		return s.cur.db.View(func(tx *bolt.Tx) (err error) {
			if s.meta, err = readMeta(s.Path(), tx); err != nil {
				return err
			}
			s.local, err = readLocal(s.Path(), tx)
			return err
		})
	})
}

func readMeta(path string, tx *bolt.Tx) (fileMeta, error) {
	for _, name := range [][]byte{bucketRecords, bucketMeta, bucketLocal} {
		if tx.Bucket(name) == nil {
			return fileMeta{}, damaged(path, "it has no bucket %q", name)
		}
	}
	return decodeMeta(path, tx.Bucket(bucketMeta).Get(keyMeta))
}

// SetOptions replaces the options except MaxFileSize. It is for the time before raft starts, since state machine and node are made
// after their store.
func (s *Store) SetOptions(o Options) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o = o
}

// moved tells of a step of an install, a large local snapshot or a reader.
func (s *Store) moved() {
	if fn := s.options().Progress; fn != nil {
		fn()
	}
}

func (s *Store) options() Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o
}

// Close ends all readers and an install that is still running, and closes the file. It waits for calls that are in progress.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	readers, install := s.readers, s.installing
	s.readers = nil
	s.mu.Unlock()
	if install != nil {
		_ = install.Cancel()
	}
	for r := range readers {
		r.end(ErrClosed)
	}
	s.building.Lock() // a new file in progress, which is given up
	defer s.building.Unlock()
	s.writing.Lock() // a transaction in progress
	defer s.writing.Unlock()
	err := s.unref(s.cur)
	s.shrinking.Wait()
	return errors.Join(err, s.lock.Close())
}

// Path is the path of the file.
func (s *Store) Path() string { return filepath.Join(s.dir, fileName) }

// Meta returns the meta data of the snapshot, or false if there is none yet.
func (s *Store) Meta() (Meta, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.meta.Meta
	m.Configuration = m.Configuration.Clone()
	return m, m.Index > 0
}

// List returns the snapshot, if there is one. Its size is not known before Open.
func (s *Store) List() ([]*raft.SnapshotMeta, error) {
	if m, ok := s.Meta(); ok {
		return []*raft.SnapshotMeta{m.raft(0)}, nil
	}
	return nil, nil
}

// id is how raft names a snapshot at a place in the log. There is one state at one place.
func (m *Meta) id() string { return fmt.Sprintf("%d-%d", m.Term, m.Index) }

func (m *Meta) raft(size int64) *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: m.id(), Index: m.Index, Term: m.Term,
		Configuration: m.Configuration, ConfigurationIndex: m.ConfigurationIndex, Size: size,
	}
}

// ref returns the current file with a reference for the caller.
func (s *Store) ref() (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%s is %w", s.Path(), ErrClosed)
	}
	s.cur.refs++
	return s.cur, nil
}

// unref gives a reference back and closes the file with the last one.
func (s *Store) unref(f *file) error {
	s.mu.Lock()
	f.refs--
	last := f.refs == 0
	s.mu.Unlock()
	if !last {
		return nil
	}
	err := f.db.Close()
	if f.gone != nil {
		s.shrinking.Go(func() { s.shrink(f.gone) })
	}
	return err
}

const shrinkStep = 4 << 20

// shrink closes a file that has no name any more, after it was made small in steps: to give back all of a large one at once takes the
// system a tenth of a second, in which others wait for the disk.
func (s *Store) shrink(f *os.File) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err == nil && st.Nlink == 0 { // else somebody made a link to it
		for size := st.Size - shrinkStep; size > 0 && s.stopped() == nil && f.Truncate(size) == nil; size -= shrinkStep {
			s.moved()
		}
	}
	_ = f.Close() // what is left goes now
}
