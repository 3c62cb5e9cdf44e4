// Package cluster is the node. STUB: replaced by the cluster work.
package cluster

import (
	"log/slog"
	"time"

	"limitd/fsm"
)

// Member is one node as the configuration lists it.
type Member struct{ ID, Resp, Peer string }

// Handler answers payloads that Forward sent from another node. reply(nil): not the leader. The payload is the handler's until it calls reply, once, on any goroutine.
type Handler func(payload []byte, timeout time.Duration, reply func([]byte))

// Config of a node.
type Config struct {
	ID       string   // this node's id in Members
	Members  []Member // as listed; the first one bootstraps. One member: a cluster of one
	DataDir  string
	Insecure bool // allow peer addresses beyond loopback without TLS

	Heartbeat, Election, Lease time.Duration // 1 s each
	DiskStall                  time.Duration // 60 s: exit when a write takes longer
	SnapshotInterval           time.Duration // 30 s
	SnapshotThreshold          uint64        // 4096
	TrailingBytes              int64         // 256 MiB
	MinFreeDisk                int64         // 256 MiB

	Version string // of the binary, shown to peers
	Logger  *slog.Logger
	Clock   Clock       // nil: the machine's
	Fatal   func(error) // called once when the node must not go on (fail-stop); cmd prints the reason and exits
}

// Clock is the machine's time, or a test's.
type Clock interface {
	Boot() int64    // CLOCK_BOOTTIME, ns
	BootID() string // changes with each boot of the machine
	Wall() int64    // unix ns
}

// Node is one member of the cluster.
type Node struct{}

func Open(cfg Config, h Handler) (*Node, error) { panic("todo") } // opens stores, starts peer port and raft; returns before a leader is known
func (n *Node) SetHandler(h Handler)            { panic("todo") } // before Start
func (n *Node) Start() error                    { panic("todo") }
func (n *Node) FSM() *fsm.FSM                   { panic("todo") }

// limiter.Proposer and limiter.Router
func (n *Node) Begin() (fsm.Turn, error)                                            { panic("todo") }
func (n *Node) Commit(entry []byte) (uint64, fsm.Outcome)                           { panic("todo") }
func (n *Node) Abort()                                                              { panic("todo") }
func (n *Node) Leading() bool                                                       { panic("todo") }
func (n *Node) Touch() (now int64, ok bool)                                         { panic("todo") }
func (n *Node) AwaitLeader(d time.Duration) bool                                    { panic("todo") }
func (n *Node) Forward(payload []byte, timeout time.Duration) ([]byte, fsm.Outcome) { panic("todo") }

// Status is what RL.CLUSTER STATUS, INFO and RL.TIME show.
type Status struct {
	ID, RaftID, LeaderID, LeaderRaftID, LeaderResp string // LeaderResp: its RESP address
	Role                                           string // leader, follower, candidate, nonvoter; waiting before the bootstrap
	ClusterID                                      string
	Generation, Term, Commit, Applied, Last        uint64
	Time, Offset, WallOffset                       int64 // estimate of cluster time now; calendar offset; cluster time minus wall clock, ns
	LogFirst, LogLast, SnapshotIndex               uint64
	Voters                                         int
	DiskFree                                       int64
	DiskLow                                        bool
	Ready                                          bool // leader: may decide; follower: in touch
}

// NodeInfo is one row of RL.CLUSTER NODES.
type NodeInfo struct {
	ID, RaftID, Resp, Peer string
	Role                   string // leader, voter, nonvoter
	ContactMS              int64  // since this node last heard from it; 0 for itself, -1 unknown
	Applied                uint64
	Version                string
}

func (n *Node) Status() Status                { panic("todo") }
func (n *Node) Nodes() []NodeInfo             { panic("todo") }
func (n *Node) Transfer(id string) error      { panic("todo") } // leadership to id ("": any caught-up voter); forwarded to the leader if this node is not
func (n *Node) Hashes() []fsm.HashPoint       { panic("todo") }
func (n *Node) SaveSnapshot() (string, error) { panic("todo") } // writes the verified stream into DataDir/backups and returns its path
func (n *Node) DiskLow() bool                 { panic("todo") }
func (n *Node) Close() error                  { panic("todo") } // plain stop; not leave
