// Package cluster is a node of the cluster: raft put together so that three nodes
// agree on one sequence of batches and on one clock, and stop rather than guess.
//
// # What it gives
//
// A [Node] has one turn. Begin takes it on the leader and says what the batch is
// decided on: the last batch, the term, the cluster time. Commit proposes the
// entry and returns when it is applied here, or says what is known of it. One
// batch is in flight at a time, so a batch is always decided on the state that it
// will meet, and an entry that meets another one is void on every node.
//
// A decision that changes nothing needs no agreement. [Node.Touch] says whether the
// state applied here is current enough to deny from, and what time it is.
//
// # Time
//
// Cluster time starts at the first leader's wall clock and then follows elapsed
// time only, on the boot clock of whoever leads (leaderclock.go). Each node notes a
// receipt when an entry with its time arrives (receipts.go); a new leader goes on
// from its newest receipt. So a failover loses a network delay and gains nothing,
// whatever the wall clocks say. A node restarted on a rebooted machine has no
// receipt and asks the voters.
//
// # What raft is not trusted with
//
// hashicorp/raft is used as it is, behind wrappers:
//
//   - The log and the stable store carry checksums and are read once at the start;
//     after the first failure neither is used again (disk.go, logstore.go,
//     stablestore.go). A node that may have forgotten what it acknowledged does not
//     start: it must be removed and join again. An old copy of the file is told by
//     what the snapshot file notes (marks.go, mending.go).
//   - While a write is stuck in the disk, a leader sends nothing, so the others
//     elect; when it stays stuck, the process stops (transport.go, watchdog.go).
//   - Heartbeats have no shortcut past raft's main loop: it changes terms beside
//     it. So the heartbeat timeout must exceed the slowest healthy write.
//   - One request to a follower at a time: pipelining can wedge it for good.
//   - The log must continue the snapshot, before raft starts and after an install:
//     raft would keep a log of another history and send its entries to others
//     (continuity.go).
//   - Leadership, as raft tells it, is not yet leadership: a barrier, the same term
//     after it, a clock, a first batch come first (leadership.go).
//   - A transfer of leadership can leave raft refusing writes for ever: one at a
//     time, to a voter that is close, with a rest after it (transfer.go).
//
// # Stopping
//
// Whatever makes going on unsafe is given to Config.Fatal, once: a failed write, a
// damaged entry, a diverged state machine, a main loop that does not answer. What
// is given time before that is given time in which the process ran (awake.go): a
// machine that slept, or a process that was stopped, is no failure.
//
// # The peer port
//
// Everything between nodes goes over one port each (peers.go): raft's own streams,
// forwarded requests, and questions. Both ends check the other's raft id and
// cluster id first; a raft id is made with its data directory, so a wiped disk
// comes back as a stranger. FORMAT.md describes what is on the wire and in the
// rows of the log.
//
// The package imports fsm and snapshot, and nothing else of limitd.
package cluster
