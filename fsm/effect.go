package fsm

import "limitd/snapshot"

// Op is what an effect does. The values are part of the entry format.
type Op uint8

const (
	OpReplace    Op = 1 // the record (NS, Key, Ident) becomes State, Expiry
	OpSplice     Op = 2 // drop Drop bytes in front of its state and Cut bytes at the end, append State; Expiry
	OpDelete     Op = 3 // the record (NS, Key, Ident) is removed
	OpClear      Op = 4 // all records of namespace NS are removed
	OpClearAll   Op = 5 // all records are removed
	OpSetCluster Op = 6 // State = 16 bytes cluster id, 8 bytes generation (little endian); only while none is set
	OpSetOffset  Op = 7 // State = 8 bytes calendar offset ns (little endian)
)

// Bounds of a record, in bytes. What exceeds them could not be kept in the snapshot file.
const (
	MaxKey   = snapshot.MaxKey
	MaxIdent = snapshot.MaxIdent // at least 1
	MaxState = snapshot.MaxState
)

// Effect is one change of the state. Slices are read during the call they are given to, never kept.
//
// Effects of an entry take effect in their order. A splice of a record that is
// absent, or expired by the batch's time, starts from an empty state. One that
// drops and cuts more than there is, or makes more than MaxState, was decided on
// another state: the batch is void.
type Effect struct {
	Op     Op
	NS     uint8
	Key    []byte // 0 to MaxKey bytes
	Ident  []byte // 1 to MaxIdent bytes
	Drop   int
	Cut    int    // only if Turn.Version is VersionCut or above
	State  []byte // at most MaxState bytes
	Expiry int64  // cluster time from which the record means the same as no record, ns
}

// Turn is what a batch is decided on.
type Turn struct {
	Base uint64 // index of the last batch that took effect
	Term uint64 // raft term of the proposer, an assertion
	At   int64  // cluster time of the batch, ns

	Version uint8 // of the entry, at most ReadsEntry; 0 means 1
}

// Outcome says what became of a proposal.
type Outcome uint8

const (
	Applied Outcome = iota // it took effect and is applied on this node
	Void                   // it was decided on another state: certainly no effect
	Refused                // it was never proposed: certainly no effect
	Unknown                // it may take effect, or not
)

func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Void:
		return "void"
	case Refused:
		return "refused"
	}
	return "unknown"
}

// Result is what raft's ApplyFuture.Response() holds for a batch.
type Result struct {
	Outcome Outcome // Applied or Void; Unknown when Err is set
	Err     error   // why the machine halted, if it did
}
