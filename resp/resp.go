package resp

import (
	"log/slog"
	"time"

	"limitd/algo"
	"limitd/limiter"
)

// Config holds the bounds of a server. A field that is zero gets the value of
// [DefaultConfig], except where 0 means off.
type Config struct {
	MaxArgs         int           // arguments of one command, its name included
	MaxArgBytes     int           // bytes of one argument
	MaxRequestBytes int           // bytes of one command as sent
	MaxPipeline     int           // commands taken as one chunk; what is beyond waits, it is no error
	MaxClients      int           // connections
	MaxClientsPerIP int           // connections from one address; 0: off
	IdleTimeout     time.Duration // a connection that sends nothing for so long is closed; 0: off
	WriteTimeout    time.Duration // a client that takes nothing for so long is closed
	OutputBuffer    int           // bytes of replies that may wait for the client to read them
	MaxBuffers      int64         // bytes of half-sent commands and unread replies of all connections
	MaxKey          int           // bytes of a key
	MaxMemory       int64         // shown as maxmemory by INFO and CONFIG GET; 0: no bound
	Version         string        // of limitd
	Users           []User        // none: nobody is asked for a password
	Trace           bool          // the command RL.TRACE exists
	Logger          *slog.Logger
}

// DefaultConfig is what an unconfigured server uses.
func DefaultConfig() Config {
	return Config{
		MaxArgs:         1024,
		MaxArgBytes:     64 << 10,
		MaxRequestBytes: 1 << 20,
		MaxPipeline:     10000,
		MaxClients:      20000,
		WriteTimeout:    5 * time.Second,
		OutputBuffer:    8 << 20,
		MaxBuffers:      256 << 20,
		MaxKey:          1 << 10,
		Version:         "dev",
		Logger:          slog.Default(),
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	orInt(&c.MaxArgs, d.MaxArgs)
	orInt(&c.MaxArgBytes, d.MaxArgBytes)
	orInt(&c.MaxRequestBytes, d.MaxRequestBytes)
	orInt(&c.MaxPipeline, d.MaxPipeline)
	orInt(&c.MaxClients, d.MaxClients)
	orInt(&c.OutputBuffer, d.OutputBuffer)
	orInt(&c.MaxKey, d.MaxKey)
	if c.MaxBuffers <= 0 {
		c.MaxBuffers = d.MaxBuffers
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = d.WriteTimeout
	}
	if c.Version == "" {
		c.Version = d.Version
	}
	if c.Logger == nil {
		c.Logger = d.Logger
	}
	return c
}

func orInt(v *int, d int) {
	if *v <= 0 {
		*v = d
	}
}

// Limiter is what the server needs of the limiter: [limiter.Limiter] is one.
// All methods are called from many goroutines.
type Limiter interface {
	Do(*limiter.Chunk)
	Parse(expr []byte) (algo.Limit, error)
	Size(ns uint8) int
	Scan(ns uint8, cursor uint64, count int) ([][]byte, uint64)
	Memory(ns uint8, key []byte) int64 // about the bytes of a key's records on this node; 0: none
	Stats() limiter.Stats
}

// Status is what INFO, ROLE, TIME, RL.TIME and RL.CLUSTER STATUS show of the
// cluster, as this node knows it.
type Status struct {
	ID, RaftID           string
	LeaderID, LeaderAddr string // empty: none known
	Role                 string // leader, follower, candidate, nonvoter; before it is a member: waiting, joining; afterwards: none
	ClusterID            string
	Generation           uint64
	Term                 uint64
	Commit, Applied      uint64 // Raft indexes
	Last                 uint64 // Raft index of the last batch that took effect
	Time                 int64  // cluster time, ns; an estimate on a follower
	Offset               int64  // calendar offset, ns: a date is Time + Offset
	WallOffset           int64  // cluster time minus this node's wall clock, ns
	Voters               int
	DiskFree             int64 // bytes
	DiskLow              bool  // its disk, or the disks of too many voters, have little space left: a leader refuses charges
	WritesEntry          uint8 // newest version of the log's entries that all members read
	Ready                bool  // this node answers
	Loading              bool  // the state is still being loaded

	Saving     bool          // a snapshot is being written
	Saved      time.Time     // wall clock at the end of the last one; zero: none since the start
	SaveTook   time.Duration // the last one, written or not
	SaveFailed bool          // it was not written
	Unsaved    int           // records that changed since the last one began

	LogStore     string        // that keeps the log: bolt or wal
	LogWrites    uint64        // synced writes of log, term and vote since the start
	LogWriteP99  time.Duration // upper bound, of those
	BoundedClock uint64        // leaderships here whose clock was too far ahead to be believed
}

// NodeInfo is one row of RL.CLUSTER NODES.
type NodeInfo struct {
	ID, RaftID, Resp, Peer string
	Role                   string // leader, voter, nonvoter; none: listed, and no member
	ContactMS              int64
	Applied                uint64
	Version                string
}

// HashPoint is one pair of RL.HASH: the chain hash over the entries up to Index.
type HashPoint struct{ Index, Hash uint64 }

// Admin is what the server needs of the node.
type Admin interface {
	Status() Status
	Nodes() []NodeInfo
	Change(Change) error // nil: it is committed, or was so already
	Hashes() []HashPoint // the newest applied index last
	SaveSnapshot() (path string, err error)
}
