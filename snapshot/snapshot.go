// Package snapshot keeps limiter state. STUB: replaced by the snapshot work.
package snapshot

import (
	"io"

	"github.com/hashicorp/raft"
)

// Header is the replicated part of a snapshot's meta data; it is in the stream.
type Header struct {
	Last       uint64   // index of the last batch that took effect
	T          int64    // cluster time, ns
	Offset     int64    // calendar offset, ns
	Chain      uint64   // chain hash over the effective batches
	ClusterID  [16]byte // zero: none yet
	Generation uint64
}

// Meta is the meta data of the file.
type Meta struct {
	Header
	Index, Term        uint64
	Configuration      raft.Configuration
	ConfigurationIndex uint64
}

// Record is one record of the file or stream. Name is namespace, key and identity as [AppendName] writes them; names order the stream.
type Record struct {
	Name    []byte
	State   []byte
	Expiry  int64
	Deleted bool // Commit only: remove it
}

// AppendName appends the name of the record (ns, key, ident): ns(1) keylen(2, big endian) key ident.
func AppendName(dst []byte, ns uint8, key, ident []byte) []byte { panic("todo") }

// SplitName is the inverse of AppendName; the slices alias name.
func SplitName(name []byte) (ns uint8, key, ident []byte, err error) { panic("todo") }

// Receipt says that cluster time was At when this machine's CLOCK_BOOTTIME was Boot, in the boot BootID.
type Receipt struct {
	At, Boot int64
	BootID   string
}

// Options of a store.
type Options struct {
	Applied     func() uint64                  // newest index applied by the state machine; installs older than it are refused
	OnInstall   func(index, term uint64) error // after the rename of an installed file, before raft hears of it
	Receipt     func() (Receipt, bool)         // the newest receipt, written with each Commit
	MaxFileSize int64                          // initial mmap size; 0: 64 GiB
}

// Store implements raft.SnapshotStore over one bbolt file.
type Store struct{}

func OpenStore(dir string, o Options) (*Store, error) { panic("todo") }

func (s *Store) SetOptions(o Options)                { panic("todo") } // before raft starts: fsm and cluster are made after the store
func (s *Store) Close() error                        { panic("todo") }
func (s *Store) Path() string                        { panic("todo") }
func (s *Store) Meta() (Meta, bool)                  { panic("todo") }
func (s *Store) Receipt() (Receipt, bool)            { panic("todo") }
func (s *Store) SaveReceipt(r Receipt) error         { panic("todo") }
func (s *Store) List() ([]*raft.SnapshotMeta, error) { panic("todo") }
func (s *Store) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, t raft.Transport) (raft.SnapshotSink, error) {
	panic("todo")
}
func (s *Store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) { panic("todo") }

// Sink is the raft.SnapshotSink of a Store.
type Sink struct{}

// Commit is how FSMSnapshot.Persist writes a local snapshot: changed records (in name order) and the header, in one synced transaction.
// It takes the store's mutex, which Release gives back.
func (k *Sink) Commit(h Header, records []Record) error { panic("todo") }
func (k *Sink) Release()                                { panic("todo") }

// Reader is what Store.Open returns, behind raft's wrappers.
type Reader struct{}

// FromReader finds the Reader behind raft's wrappers.
func FromReader(rc io.ReadCloser) (*Reader, bool) { panic("todo") }
func (r *Reader) Meta() Meta                      { panic("todo") }

// Each calls fn for each record not expired at T, straight from the file (checked), in name order; a damaged record is an error. Slices are valid during fn.
func (r *Reader) Each(fn func(Record) error) error { panic("todo") }

// ReadStream checks a stream and calls head once, then rec per record in name order; slices are valid during the call.
func ReadStream(r io.Reader, head func(Header) error, rec func(Record) error) (Header, error) {
	panic("todo")
}
