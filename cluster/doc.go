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
//   - Raft's main loop waits for a write that is stuck in the disk, and its heartbeats
//     go on. So a leader hands over beside raft, and sends nothing; when the write stays
//     stuck, the process stops (cede.go, transport.go, watchdog.go). Nobody else may wait
//     for the disk with it (logends.go).
//   - A full disk stops a node. So that not all of them fill up together, charges are
//     refused before (freedisk.go).
//   - After each failed request raft waits twice as long before it replicates again, and
//     a follower that comes back would be of no use for as long (transport.go).
//   - Heartbeats have no shortcut past raft's main loop: it changes terms beside
//     it. So the heartbeat timeout must exceed the slowest healthy write.
//   - One request to a follower at a time: pipelining can wedge it for good.
//   - The log must continue the snapshot, before raft starts and after an install:
//     raft would keep a log of another history and send its entries to others
//     (continuity.go).
//   - The main loop waits for a snapshot that is being sent to it: it is freed when the
//     sender stalls and somebody asks for the vote (install.go). The leader keeps the
//     log behind the snapshot until its receiver has caught up; compacted away
//     meanwhile, the receiver would need the next one, and the next (trailing.go).
//   - A vote is refused to a candidate that the voter's own configuration, which may be
//     old, does not know as a voter: a majority could stay without a leader (candidate.go).
//   - Leadership, as raft tells it, is not yet leadership: a barrier, the same term
//     after it, a clock, a first batch come first (leadership.go).
//   - A transfer of leadership can leave raft refusing writes for ever: one at a
//     time, to a voter that is close, with a rest after it (transfer.go).
//
// # Membership
//
// The first node listed founds the cluster, once all listed nodes have answered
// that they are empty (bootstrap.go). Later ones join ([Config.Join], join.go): the
// leader asks the node whether it is what it shall be (invite.go) and makes it a
// non-voter, and gives it its vote when it is caught up (promote.go). What a node wants
// to be it keeps itself (joining.go), so a change of the leader loses nothing. A node
// never runs raft on an empty log before it knows that it is a member: it would grant
// its vote to anybody.
//
// [Node.Change] is asked of any node and made by the leader, one change at a time, on
// the committed configuration (change.go, change_leader.go). One after which too few
// voters would answer is refused (quorum.go). A leader that shall go hands over first.
//
// Raft tells neither the index of a configuration nor whether it is committed
// (configurations.go), and it does not tell a follower that it was removed. A node
// learns that from a committed configuration, its own or another node's, that is
// newer than the newest one with it (removed.go); then [Config.Removed] is called.
//
// # Stopping
//
// Whatever makes going on unsafe is given to Config.Fatal, once: a failed write, a
// damaged entry, a diverged state machine, a main loop that does not answer. What
// is given time before that is given time in which the process ran (awake.go): a
// machine that slept, or a process that was stopped, is no failure.
//
// # When the majority is lost
//
// [Recover] makes one survivor, while it is stopped, the only voter of its cluster,
// and [RestoreDir] a saved state the beginning of a new one. Both build the files of
// the new node beside; no node starts with a part of them (replacement.go). Who was
// left behind by a recovery is refused by the generation in the handshake.
//
// # The peer port
//
// Everything between nodes goes over one port each (peers.go): raft's own streams,
// forwarded requests, and questions. Both ends check the other's raft id and
// cluster id first; a raft id is made with its data directory, so a wiped disk
// comes back as a stranger (handshake.go). FORMAT.md describes what is on the wire and in the
// rows of the log.
//
// The package imports fsm and snapshot, and nothing else of limitd.
package cluster
