// Package fsm is the replicated state machine: what a committed entry does to
// the state that every node holds.
//
// The leader decides, and an entry carries what it decided: effects on records,
// never the commands that led to them. Applying an entry therefore needs no
// algorithm, no clock and no judgement, and two nodes that applied the same
// entries hold the same state, whatever versions they run. The package starts no
// goroutine, does no I/O and logs nothing.
//
// An entry (FORMAT.md) names the state it was decided on, as the index of the
// last batch that took effect. An entry that was decided on another state is
// void on every node alike, so a leader that was replaced while its batch was in
// flight cannot charge twice. An entry that this node cannot understand, or that
// was decided on a state this node should have and has not, halts the machine:
// nothing is applied any more, [FSM.Halted] says why, and the node must stop.
//
// The records live in a [Table]: 256 shards, no pointer per record, read by many
// goroutines while raft's goroutine applies. The table knows which records
// changed since the last snapshot, so that a snapshot writes only those, and it
// keeps the old version of a record that changes while a snapshot is being
// written (copy on write), so that a snapshot never stops the machine.
//
// A record whose expiry is not after the cluster time means the same as no
// record. Dropping it is therefore local: [FSM.Sweep] does it in small steps, on
// each node when it likes.
//
// fsm imports snapshot, and nothing else of limitd.
package fsm
