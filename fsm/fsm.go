package fsm

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
	"limitd/trace"
)

// State is the small part of the replicated state, and where it stands.
type State struct {
	snapshot.Header        // Last, T, Offset, Chain, ClusterID, Generation
	Applied         uint64 // newest raft index applied by this machine
}

// FSM implements raft.FSM and raft.ConfigurationStore.
//
// Apply, StoreConfiguration, Snapshot and Restore belong to raft's goroutine;
// all else may be called by any, at any time.
type FSM struct {
	table    atomic.Pointer[Table]
	now      atomic.Int64
	applied  atomic.Uint64
	halted   atomic.Pointer[error]
	logBytes atomic.Int64 // entries applied since the last snapshot began

	mu      sync.Mutex // guards the following; held for moments
	state   State
	points  points
	running *stateSnapshot // between Snapshot and Release
	saves   Saves

	batch     batch // raft's goroutine only
	portion   int   // records of a snapshot that go to its sink at once
	onApplied func(index uint64)
	trace     func(trace.Row)
}

var (
	_ raft.FSM                = (*FSM)(nil)
	_ raft.ConfigurationStore = (*FSM)(nil)
)

// ErrUntrusted is in the reason of a machine that halted because this node does not
// have what the others have.
var ErrUntrusted = errors.New("this node has diverged from the others, and its data directory cannot be trusted")

// New makes an empty machine. It meets the store only through the sinks and
// readers that raft hands over, which must be a [snapshot.Store]'s.
func New(_ *snapshot.Store) *FSM {
	f := &FSM{portion: portionRecords}
	f.table.Store(newTable([16]byte{}))
	f.points.startAt(0, 0)
	return f
}

// OnApplied sets what is called with the index after each Apply, StoreConfiguration and Restore, on raft's goroutine. It is set before raft starts.
func (f *FSM) OnApplied(fn func(index uint64)) { f.onApplied = fn }

// SetPortion sets the number of changed records from which a snapshot goes to the
// store in portions. It is for tests, and set before raft starts.
func (f *FSM) SetPortion(records int) { f.portion = records }

// Trace sets what is told of each entry that is applied and of each state that is
// replaced, on raft's goroutine. It is set before raft starts.
func (f *FSM) Trace(fn func(trace.Row)) { f.trace = fn }

// State returns the small part of the state, all of it as of one applied index.
func (f *FSM) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Time is T, the cluster time of the applied state, ns.
func (f *FSM) Time() int64 { return f.now.Load() }

// Applied is the newest raft index applied here.
func (f *FSM) Applied() uint64 { return f.applied.Load() }

// Table returns the records. Restore replaces the table, so callers do not keep it for long.
func (f *FSM) Table() *Table { return f.table.Load() }

// Hashes returns the chain hash at multiples of 256, ascending, and last at the newest applied index.
func (f *FSM) Hashes() []HashPoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := append(make([]HashPoint, 0, pointsKept+1), f.points.kept...)
	if n := len(all); n == 0 || all[n-1].Index != f.state.Applied {
		all = append(all, HashPoint{f.state.Applied, f.state.Chain})
	}
	return all
}

// Halted returns why the machine applies nothing any more, nil while it does: it
// diverged, or met an entry it cannot read. The node must stop.
func (f *FSM) Halted() error {
	if err := f.halted.Load(); err != nil {
		return *err
	}
	return nil
}

// Pending returns the number of records, and the bytes of entries, that changed
// since the last snapshot that succeeded or is being written.
func (f *FSM) Pending() (records int, logBytes int64) {
	return int(f.Table().dirty.Load()), f.logBytes.Load()
}

// Saves says how the snapshots stand.
type Saves struct {
	Running bool
	Saved   time.Time     // wall clock at the end of the last that was written; zero: none since the start
	Took    time.Duration // of that one, or of the failure after it
	Failed  bool          // the last one was not written
}

// Saves returns how the snapshots of this node stand.
func (f *FSM) Saves() Saves {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.saves
	s.Running = f.running != nil
	return s
}

// Sweep drops records that expired by T, looking at about slots of them, in
// steps of one page (at most 4096) under a lock; the next call goes on where
// this one ended. A call goes through the table at most once.
func (f *FSM) Sweep(slots int) (dropped int) {
	return f.Table().sweepStep(slots, f.Time())
}
