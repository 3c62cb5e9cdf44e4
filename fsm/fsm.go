// Package fsm is the replicated state machine. STUB: replaced by the fsm work.
package fsm

import (
	"io"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// Op is what an effect does.
type Op uint8

const (
	OpReplace    Op = 1 // the record (NS, Key, Ident) becomes State, Expiry
	OpSplice     Op = 2 // drop Drop bytes in front of its state, append State; Expiry
	OpDelete     Op = 3 // the record (NS, Key, Ident) is removed
	OpClear      Op = 4 // all records of namespace NS are removed
	OpClearAll   Op = 5 // all records are removed
	OpSetCluster Op = 6 // State = 16 bytes cluster id, 8 bytes generation (little endian); only while none is set
	OpSetOffset  Op = 7 // State = 8 bytes calendar offset ns (little endian)
)

// Effect is one change of the state. Slices are read during the call they are given to, never kept.
type Effect struct {
	Op     Op
	NS     uint8
	Key    []byte
	Ident  []byte
	Drop   int
	State  []byte
	Expiry int64
}

// Turn is what a batch is decided on.
type Turn struct {
	Base uint64 // index of the last batch that took effect
	Term uint64 // raft term of the proposer, an assertion
	At   int64  // cluster time of the batch, ns
}

// Outcome says what became of a proposal.
type Outcome uint8

const (
	Applied Outcome = iota // it took effect and is applied on this node
	Void                   // it was decided on another state: certainly no effect
	Refused                // it was never proposed: certainly no effect
	Unknown                // it may take effect, or not
)

// Result is what raft's ApplyFuture.Response() holds for a batch.
type Result struct {
	Outcome Outcome // Applied or Void
	Err     error   // why the machine halted, if it did
}

// AppendEntry appends the entry that proposes effects at turn to dst.
func AppendEntry(dst []byte, t Turn, effects []Effect) []byte { panic("todo") }

// EntryTime reads the cluster time of an entry without decoding it; false if it is no entry of ours.
func EntryTime(data []byte) (at int64, ok bool) { panic("todo") }

// State is the small part of the replicated state, and where it stands.
type State struct {
	snapshot.Header        // Last, T, Offset, Chain, ClusterID, Generation
	Applied         uint64 // newest raft index applied by this machine
}

// HashPoint is the chain hash at a raft index.
type HashPoint struct {
	Index uint64
	Hash  uint64
}

// FSM implements raft.FSM and raft.ConfigurationStore.
type FSM struct{}

func New(store *snapshot.Store) *FSM                                 { panic("todo") }
func (f *FSM) Apply(l *raft.Log) any                                 { panic("todo") }
func (f *FSM) StoreConfiguration(index uint64, c raft.Configuration) { panic("todo") }
func (f *FSM) Snapshot() (raft.FSMSnapshot, error)                   { panic("todo") }
func (f *FSM) Restore(rc io.ReadCloser) error                        { panic("todo") }
func (f *FSM) State() State                                          { panic("todo") }
func (f *FSM) Time() int64                                           { panic("todo") } // T, atomic
func (f *FSM) Applied() uint64                                       { panic("todo") } // atomic
func (f *FSM) Table() *Table                                         { panic("todo") } // atomic pointer; Restore swaps it
func (f *FSM) Hashes() []HashPoint                                   { panic("todo") } // multiples of 256 ascending, the newest applied index last
func (f *FSM) Halted() error                                         { panic("todo") } // non-nil: diverged, unknown version, damaged entry; the node must stop
func (f *FSM) Pending() (records int, logBytes int64)                { panic("todo") } // dirty records and entry bytes since the last snapshot
func (f *FSM) Sweep(slots int) (dropped int)                         { panic("todo") } // drop records expired at T, looking at up to n slots
func (f *FSM) OnApplied(fn func(index uint64))                       { panic("todo") } // set before start; called after each Apply/StoreConfiguration/Restore

// Table holds the records in memory.
type Table struct{}

// Record is one record as readers see it.
type Record struct {
	Ident  []byte
	State  []byte
	Expiry int64
}

func (t *Table) Hash(ns uint8, key []byte) uint64 { panic("todo") }

// Get copies the state of a record into dst[:0] and returns it; expired records are returned too (the caller compares Expiry with its now).
func (t *Table) Get(h uint64, ns uint8, key, ident, dst []byte) (state []byte, expiry int64, ok bool) {
	panic("todo")
}

// Records calls fn for each record of a key, expired ones too, under the shard's read lock: fn must not call the table.
func (t *Table) Records(h uint64, ns uint8, key []byte, fn func(r Record)) { panic("todo") }

// Len is the number of records of a namespace, not yet swept ones included. Bytes is the memory held.
func (t *Table) Len(ns uint8) int { panic("todo") }
func (t *Table) Bytes() int64     { panic("todo") }

// Scan returns up to about count keys of ns that hold a record live at now, from cursor on, and the next cursor (0: done).
func (t *Table) Scan(ns uint8, cursor uint64, count int, now int64) (keys [][]byte, next uint64) {
	panic("todo")
}
