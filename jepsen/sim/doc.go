// Package sim runs whole clusters in virtual time, hundreds of times faster than real
// time, and judges every decision at the moment at which it is made.
//
// A run is a bubble of testing/synctest. In it are three or five nodes as they are in
// `limitd serve`: cluster.Node with all of hashicorp/raft, the peer protocol and its
// handshake, limiter.Limiter, the stores over bbolt. What is not the product's is the
// machine: the network (network.go, conn.go), clocks (clock.go), the disk's speed
// (diskstate.go), and what a kill leaves of files (image.go).
//
// # What is done to them
//
// A nemesis draws faults from the seed (faults.go): cuts of all shapes and directions,
// slow and flapping links, resets, pauses, slow and stalled disks, kills, lost power,
// plain stops, transfers of leadership that are cut off in the middle, wrong wall
// clocks. Leaders are its favourite. Snapshots are taken every few entries and logs
// kept short, so a node that was away for seconds needs an install.
//
// A kill is exact. The process loses its network, its files are copied as they are at
// that moment, and the next process starts on the copy. The old one runs on for a
// while, as goroutines cannot be killed, on files and a network that nobody else sees.
// It happens anywhere, before or after a write of the log too, and with the tag
// `failpoint` at each of the crash points of the snapshot file.
//
// # What is judged
//
// The oracle (oracle.go) hears the rows that nodes trace. Each round is replayed on a
// reference model in integers without bounds, on the state that it was decided on; an
// entry must be the same on all nodes, follow the guard's rule and move cluster time
// forward and never further than true time; a call that was answered must be in effect,
// one that was refused must not; what a node answers alone must be true of an entry that
// is not too old; no term has two leaders. Calls are of CL.THROTTLE and of limit
// expressions of all algorithms, one or several at a time; what has an ID and no answer is
// asked again at another node, and an ID must be charged once. What a list says of a key is
// the model's, too. Every second seed begins shortly before a Sunday, at which windows of
// days and weeks turn over. An answer comes in time, whatever is broken.
// After the heal every node must serve every key and all must come to one state. At the
// end no goroutine may be left: synctest would say so.
//
// # What it cannot show
//
// A pause stops the network and the disk of a node, not its timers. Files lose nothing
// that was written: unsynced writes are lost in real runs, with a real disk. And a seed
// gives the same faults at the same times, but the runtime schedules goroutines as it
// likes, so a failing seed may have to be run some times until it fails again.
package sim
