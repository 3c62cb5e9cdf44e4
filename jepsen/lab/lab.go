// Package lab is the place where a cluster is broken. It runs real processes of a
// built binary and knows nothing of what they do; what it did to them it can tell
// ([Lab.Health]).
//
// [Enter] runs the program again in network, mount and process namespaces of its own.
// In there each node has a network namespace, and all are on one segment, the clients
// too, so that every direction and port can be cut. The segment is a bridge, where nft
// drops packets; or, for delay and loss, which the kernel here cannot do, a switch in
// this process (taps). Where there is no root there are proxies on loopback instead.
//
// A disk is an ext4 file system in a file: it can lose its power and with it all that
// was not synced, fill up, and hang. Single writes are made to fail by strace. A clock
// is an offset that the node's own time.Now adds, for it is built with a changed
// standard library ([BuildWithClock]). A share of the processor is a control group's.
//
// When the process ends, in whatever way, all of it vanishes: most of it with the
// namespaces, the rest by a guard that Enter leaves outside.
package lab

import (
	"errors"
	"io"
	"net"
	"time"

	"limitd/jepsen/history"
)

// Ability is something that not every machine can do.
type Ability string

const (
	Netns    Ability = "netns"    // cuts per direction and port
	Delay    Ability = "delay"    // delay, jitter and loss per link
	PowerCut Ability = "powercut" // lose what was not synced
	DiskFull Ability = "diskfull"
	SlowDisk Ability = "slowdisk" // slow, stalled and failing writes
	CPUQuota Ability = "cpuquota"
	WallTime Ability = "walltime" // the wall clock of one node
	Older    Ability = "older"    // a binary of an older commit
)

// ErrUnable is wrapped by what this machine cannot do; the text says why.
var ErrUnable = errors.New("this machine cannot do it")

// Options of a lab.
type Options struct {
	Dir      string            // run directory; data lies beside it
	Nodes    int               // voters at the start: n1, n2, …
	Spare    int               // nodes that may join later: their namespaces and disks exist, they do not run
	Settings string            // TOML put into every node's configuration, without [[node]]
	Slow     bool              // delay, jitter and loss: links go through a switch in user space
	Clocks   bool              // the binary obeys the lab about its wall clock (BuildWithClock)
	Disks    bool              // an ext4 file system of its own per node, that can lose its power, fill up, stall
	Proxy    bool              // no namespaces: TCP proxies on loopback, even if namespaces would work
	Env      map[string]string // for the nodes' processes
	Binary   string            // limitd to run
	Older    string            // limitd of an older commit; empty: there is none
	NoOlder  string            // and why
	Seed     uint64            // of what slow links draw
}

// Endpoint "client" stands for all clients, in cuts and delays.
const Client = "client"

// Port restricts a cut.
type Port string

const (
	AnyPort  Port = ""
	PeerPort Port = "peer"
	RESPPort Port = "resp"
)

// Cut stops what From sends to To; answers the other way still pass.
type Cut struct {
	From, To string
	Port     Port
}

// Quality of a link in one direction.
type Quality struct {
	Delay, Jitter time.Duration
	Loss          float64 // 0 to 1
	BytesPerSec   int64   // 0: no bound
}

// Network of a lab. Changes take effect at once and together.
type Network interface {
	// Cut replaces all cuts by these.
	Cut(cuts []Cut) error
	// Shape replaces the qualities of links, by From and To; needs Delay.
	Shape(links map[Cut]Quality) error
	// Sever resets the TCP connections between two endpoints that are open now.
	Sever(a, b string) error
	// Dial connects to a node's port as a client.
	Dial(node string, port Port, timeout time.Duration) (net.Conn, error)
}

// Node of a lab. A method that needs an ability the lab lacks returns ErrUnable.
type Node interface {
	ID() string
	RESP() string // address for clients, also from other nodes
	Peer() string
	Data() string // data directory

	Start(args ...string) error      // further arguments of serve, as --join
	StartOlder(args ...string) error // the same with the older binary
	Older() bool                     // the newest process is the older binary's
	Running() bool
	Kill() error                              // SIGKILL, and waits
	Stop(time.Duration) (exit int, err error) // SIGTERM, and waits
	Pause() error                             // SIGSTOP
	Resume() error
	Exited() (code int, ended bool) // of the newest process; -1: by a signal
	Log() io.Reader                 // all that its processes printed so far

	CPU(share float64) error // 0 to 1 of one processor; 0: no bound
	PowerCut() error         // all that was not synced is lost, the process is killed; Start mounts again
	Fill(leave int64) error  // of the disk
	Drain() error
	Stall(bool) error         // writes hang while true
	Inject(spec string) error // strace's inject expression on the running process, as fdatasync:delay_enter=50000; "" ends it
	Damage(Damage) error      // of a file of a node that does not run
	Wipe() error              // empty disk; the node does not run

	JumpWall(d time.Duration) error // moves the wall clock by d
	DriftWall(rate float64) error   // 1: as ever; 2: twice as fast
}

// Damage of a stopped node's files.
type Damage struct {
	File string // name in the data directory
	How  string // flip, truncate, zero, remove
	Seed uint64 // where
}

// Lab is a cluster to break.
type Lab interface {
	Network() Network
	Nodes() []Node // started or not, n1 first, spares last
	Node(id string) Node
	Able(Ability) error                    // nil, or why not
	Health() map[string]history.NodeHealth // Voter is the caller's to set
	Heal() error                           // ends all faults of network, processor and disk, and resumes who is paused; who does not run stays so
	Close() error
}
