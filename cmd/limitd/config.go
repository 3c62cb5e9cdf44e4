package main

import "time"

// Config is everything that a node can be told. It is read from one TOML file
// that all nodes of a cluster share; every key has a default ([DefaultConfig])
// and cluster.example.toml shows them all.
type Config struct {
	RequirePass string        `toml:"requirepass"` // the password of the default user; empty: there is none
	Users       []UserConfig  `toml:"user"`
	Cluster     ClusterConfig `toml:"cluster"`
	Nodes       []NodeConfig  `toml:"node"`
	Raft        RaftConfig    `toml:"raft"`
	Limits      LimitsConfig  `toml:"limits"`
	RESP        RESPConfig    `toml:"resp"`
	Peers       PeersConfig   `toml:"peers"`
}

// ClusterConfig names the cluster.
type ClusterConfig struct {
	Name string `toml:"name"` // in messages only: what tells clusters apart is their random id
}

// NodeConfig is one [[node]]. The first one listed founds the cluster.
type NodeConfig struct {
	ID   string `toml:"id"`
	RESP string `toml:"resp"` // host:port for clients
	Peer string `toml:"peer"` // host:port for the other nodes
	Data string `toml:"data"` // directory; a relative one starts at the working directory of the process
}

// RaftConfig holds the timings of the agreement and the storage of its log.
type RaftConfig struct {
	Heartbeat Duration `toml:"heartbeat"`
	Election  Duration `toml:"election"`
	Lease     Duration `toml:"lease"`
	LogStore  string   `toml:"log_store"` // bolt or wal; empty: what the data directory was made with, see cluster.NewStore
	DiskStall Duration `toml:"disk_stall"`
}

// LimitsConfig bounds what one node takes on.
type LimitsConfig struct {
	RequestTimeout   Duration `toml:"request_timeout"`
	LeaderWait       Duration `toml:"leader_wait"`
	MaxQueueRequests int      `toml:"max_queue_requests"`
	MaxQueueBytes    Size     `toml:"max_queue_bytes"`
	MaxMemory        Memory   `toml:"max_memory"`
	MinFreeDisk      Size     `toml:"min_free_disk"`
	MaxKey           Size     `toml:"max_key"`
	MaxLogEntries    int      `toml:"max_log_entries"`
	IDTTL            Duration `toml:"id_ttl"`
	MaxIDs           int      `toml:"max_ids"`
}

// RESPConfig bounds what one client connection may ask.
type RESPConfig struct {
	MaxArgs         int      `toml:"max_args"`
	MaxArgBytes     Size     `toml:"max_arg_bytes"`
	MaxRequestBytes Size     `toml:"max_request_bytes"`
	MaxPipeline     int      `toml:"max_pipeline"`
	MaxClients      int      `toml:"max_clients"`
	MaxClientsPerIP Count    `toml:"max_clients_per_ip"`
	IdleTimeout     Duration `toml:"idle_timeout"`
	WriteTimeout    Duration `toml:"write_timeout"`
	OutputBuffer    Size     `toml:"output_buffer"`
	MaxBuffers      Size     `toml:"max_buffers"`
}

// PeersConfig says how nodes trust each other.
type PeersConfig struct {
	Insecure bool `toml:"insecure"` // allow peer addresses beyond loopback
}

// DefaultConfig returns the defaults, without any node.
func DefaultConfig() Config {
	return Config{
		Cluster: ClusterConfig{Name: "limitd"},
		Raft: RaftConfig{
			Heartbeat: Duration(time.Second),
			Election:  Duration(time.Second),
			Lease:     Duration(time.Second),
			DiskStall: Duration(60 * time.Second),
		},
		Limits: LimitsConfig{
			RequestTimeout:   Duration(time.Second),
			LeaderWait:       Duration(200 * time.Millisecond),
			MaxQueueRequests: 65536,
			MaxQueueBytes:    64 << 20,
			MaxMemory:        Memory{Percent: 50},
			MinFreeDisk:      256 << 20,
			MaxKey:           1 << 10,
			MaxLogEntries:    100_000,
			IDTTL:            Duration(time.Minute),
			MaxIDs:           1_000_000,
		},
		RESP: RESPConfig{
			MaxArgs:         1024,
			MaxArgBytes:     64 << 10,
			MaxRequestBytes: 1 << 20,
			MaxPipeline:     10000,
			MaxClients:      20000,
			MaxClientsPerIP: 0,
			IdleTimeout:     0,
			WriteTimeout:    Duration(5 * time.Second),
			OutputBuffer:    8 << 20,
			MaxBuffers:      256 << 20,
		},
	}
}

// Node finds a node by its id.
func (c *Config) Node(id string) (NodeConfig, bool) {
	for _, n := range c.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return NodeConfig{}, false
}
