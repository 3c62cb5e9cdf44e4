package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

// Member is one node as the configuration lists it: its id, its RESP address
// and its peer address.
type Member struct{ ID, Resp, Peer string }

// Handler answers payloads that Forward sent from another node. reply(nil) says
// that this node does not lead and that the payload had no effect. The payload
// is the handler's until it calls reply, once, on any goroutine.
type Handler func(payload []byte, timeout time.Duration, reply func([]byte))

// ErrJoinRefused is for a Config.Join that it is no use to repeat.
var ErrJoinRefused = errors.New("the cluster does not take this node in")

// Config of a node. Zero values stand for the defaults that the comments name.
type Config struct {
	ID       string   // this node's id in Members
	Members  []Member // as listed; the first one bootstraps. One member: a cluster of one
	DataDir  string
	Insecure bool // allow peer addresses beyond loopback without TLS

	// Join asks a running cluster to take in this node, which waits under raftID. It is
	// called while the data directory is empty, again and again until it returns nil or an
	// error that wraps ErrJoinRefused. nil function: the node founds its cluster with Members.
	Join     func(ctx context.Context, raftID string, nonVoter bool) error
	NonVoter bool // with Join: stay a non-voter until promoted

	Heartbeat, Election, Lease time.Duration // 1 s each
	DiskStall                  time.Duration // 60 s: exit when a write takes longer
	FoundingWait               time.Duration // 1.5 s: with one member, listen for members of a cluster before founding one
	LogStore                   string        // what keeps the log, StoreBolt or StoreWal; empty: what the data directory was made with, NewStore in a new one
	SnapshotInterval           time.Duration // 30 s
	SnapshotThreshold          uint64        // 4096 entries
	SnapshotRecords            int           // 500,000 changed records make a snapshot due, whatever the entries
	SnapshotPortion            int           // 0: fsm's; for tests: changed records of which a snapshot is large, and made as a new file
	MaxMemory                  int64         // bytes of the table above which its user takes no new records: near it what was removed is saved soon, which frees it; 0: no bound
	TrailingBytes              int64         // 256 MiB of log kept behind a snapshot
	TrailingFloor              uint64        // 1024 entries of it are kept whatever their bytes
	MinFreeDisk                int64         // 256 MiB; below it charges are refused

	Version string // of the binary, shown to peers
	Logger  *slog.Logger
	Clock   Clock       // nil: the machine's
	Network Network     // of the peers; nil: the machine's. With another one the node is simulated: it rests nowhere to let others run
	Write   WriteHook   // nil; around each write to the log, and of a term or vote: simulates a disk
	Removed func(error) // called once when the node is no member any more (wraps ErrRemoved): stop it in order; nil: Fatal
	Fatal   func(error) // called once when the node must not go on (fail-stop); cmd prints the reason and exits
}

func (c Config) withDefaults() Config {
	for _, d := range []*time.Duration{&c.Heartbeat, &c.Election, &c.Lease} {
		setDefault(d, time.Second)
	}
	setDefault(&c.DiskStall, time.Minute)
	setDefault(&c.FoundingWait, foundingWait)
	setDefault(&c.SnapshotInterval, 30*time.Second)
	setDefault(&c.SnapshotThreshold, 4096)
	setDefault(&c.SnapshotRecords, snapshotRecords)
	setDefault(&c.TrailingBytes, 256<<20)
	setDefault(&c.TrailingFloor, minTrailing)
	setDefault(&c.MinFreeDisk, 256<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = machineClock{}
	}
	if c.Fatal == nil {
		c.Fatal = func(err error) { panic(err) }
	}
	return c
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// validate returns all that is wrong with the configuration, each error naming
// the key as the configuration file writes it.
func (c Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if c.DataDir == "" {
		bad("node.data: no data directory")
	}
	if len(c.Members) == 0 {
		bad("node: no node is listed")
	}
	ids, peers := map[string]bool{}, map[string]bool{}
	for _, m := range c.Members {
		if m.ID == "" {
			bad("node.id: a listed node has no id")
		}
		if ids[m.ID] {
			bad("node.id: %q is listed twice", m.ID)
		}
		ids[m.ID] = true
		if peers[m.Peer] {
			bad("node.peer: %q is the address of two nodes", m.Peer)
		}
		peers[m.Peer] = true
		switch host, _, err := net.SplitHostPort(m.Peer); {
		case err != nil:
			bad("node.peer of %s: %q is not host:port", m.ID, m.Peer)
		case !c.Insecure && !isLoopback(host):
			bad("node.peer of %s: %s is beyond loopback and the peer port has no TLS: set peers.insecure = true only if nobody else can reach that network", m.ID, m.Peer)
		}
	}
	if len(c.Members) > 0 && !ids[c.ID] {
		bad("node.id: %q is not a listed node", c.ID)
	}
	for _, d := range []struct {
		key string
		v   time.Duration
	}{{"raft.heartbeat", c.Heartbeat}, {"raft.election", c.Election}, {"raft.lease", c.Lease}} {
		if d.v < 20*time.Millisecond {
			bad("%s: %s is shorter than 20ms", d.key, d.v)
		}
	}
	if c.Lease > c.Heartbeat {
		bad("raft.lease: %s is longer than raft.heartbeat, %s", c.Lease, c.Heartbeat)
	}
	if c.Election < c.Heartbeat {
		bad("raft.election: %s is shorter than raft.heartbeat, %s", c.Election, c.Heartbeat)
	}
	if c.LogStore != "" && !slices.Contains(LogStores, c.LogStore) {
		bad("raft.log_store: %q is unknown: use %q or %q", c.LogStore, StoreBolt, StoreWal)
	}
	if c.DiskStall < c.Heartbeat {
		bad("raft.disk_stall: %s is shorter than raft.heartbeat, %s", c.DiskStall, c.Heartbeat)
	}
	return errors.Join(errs...)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// self is this node's own row of the configuration.
func (c Config) self() Member {
	m, _ := c.member(c.ID)
	return m
}

// member finds a node by its id.
func (c Config) member(id string) (Member, bool) {
	for _, m := range c.Members {
		if m.ID == id {
			return m, true
		}
	}
	return Member{}, false
}
