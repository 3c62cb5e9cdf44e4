// Package snapshot keeps the limiter state on disk: one bbolt file that is at once the node's database and Raft's only snapshot.
//
// A node serves every decision from memory. What it must find again after a restart is in two places: the Raft log, and the file
// snapshot.db, which holds the state as it was at one index of that log. [Store] implements [raft.SnapshotStore] over that file.
//
// A local snapshot costs what changed, not what exists: the state machine hands the changed records to [Sink.Commit], which writes
// them, the deletions and the new meta data in one synced transaction. If that would take longer than writing the whole file anew, or
// hundreds of megabytes for the pages that it touches, they are merged with the records of the file into a new one beside it, which is
// synced and renamed over it; if they are too many for the memory, they are handed over in portions ([Sink.Add]). The file goes from one snapshot to the next, never through anything between. A snapshot that
// the leader sends arrives as a stream, is built beside the file, verified, synced, and renamed over it. What is older than what the
// node already has is refused before the rename.
//
// The stream ([ReadStream], [StreamWriter]) is canonical: equal states have equal bytes, whatever order the file was written in and
// at whatever Raft index it was taken. It is what a follower receives, what `limitd snapshot save` writes, and what tests compare.
//
// bbolt checks its two meta pages and nothing else, so nothing here is believed unchecked: every record carries a CRC32C, the meta
// data carries the number of records and the sum of their checksums (a page that was lost or went back in time is found, not only
// one that was scribbled on), and [CheckBolt] walks the pages before bbolt sees them. Damage is an error that wraps [ErrDamaged] and
// names the file and the key; a damaged record is never served.
//
// The formats of the file and of the stream are described in FORMAT.md. The package imports nothing of limitd, except the
// switches of package mutant, and logs nothing.
package snapshot

import (
	"github.com/hashicorp/raft"
)

// Header is the replicated part of a snapshot's meta data. It is the same on every node that has applied the batch Last, and it is
// in the stream.
type Header struct {
	Last       uint64   // Raft index of the last batch that took effect
	T          int64    // cluster time, ns
	Offset     int64    // calendar offset, ns
	Chain      uint64   // chain hash over the batches that took effect
	ClusterID  [16]byte // zero: none yet
	Generation uint64   // of the cluster id; moved by an offline recovery
}

// Meta is the meta data of the file: the Header and where the snapshot stands in this node's log.
type Meta struct {
	Header
	Index, Term        uint64
	Configuration      raft.Configuration
	ConfigurationIndex uint64
}

// Record is one record of the file or the stream.
type Record struct {
	Name    []byte // as [AppendName] writes it; names order the file and the stream
	State   []byte // at most MaxState bytes, opaque
	Expiry  int64  // cluster time, ns, from which the record means the same as none
	Deleted bool   // Commit only: remove it; see Sink.Commit for what short names remove
}

// Receipt says that cluster time was At when this machine's CLOCK_BOOTTIME was Boot, in the boot BootID. It is this node's own
// knowledge: kept in the file, never in a stream.
type Receipt struct {
	At, Boot int64 // ns
	BootID   string
}
