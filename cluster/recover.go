package cluster

import "errors"

// Survey is what the data directory of a stopped node holds.
type Survey struct {
	ID, RaftID        string
	ClusterID         string // hex
	Generation        uint64
	SnapshotIndex     uint64
	LogFirst, LogLast uint64
	LastTerm          uint64
	Last              uint64 // last batch that takes effect when all of the log is applied
	Time              int64  // cluster time then, ns
	CommittedAtLeast  uint64 // entries up to here were committed for certain
	Uncertain         uint64 // entries above it: perhaps never committed
	Records           int
	Voters, NonVoters []string // raft ids
}

// Inspect reads the data directory of a stopped node, applies its log to a state in
// memory and says what came out. It writes nothing.
func Inspect(dataDir string) (Survey, error) { return Survey{}, errors.New("STUB") }

// Recovery says what Recover did.
type Recovery struct {
	Survey            // what was found
	NewRaftID  string // the node's from now on
	Generation uint64
	Backup     string // directory to which the old files were moved
}

// Recover makes the stopped node of dataDir the only voter of its cluster, with all
// that its log holds, under a new raft id and the next generation. self is the node
// as it will be started.
func Recover(dataDir string, self Member) (Recovery, error) { return Recovery{}, errors.New("STUB") }

// RestoreDir makes dataDir, which must not hold a node, the directory of the only voter of a new
// cluster that starts with the state saved in file.
func RestoreDir(file, dataDir string, self Member) (Survey, error) {
	return Survey{}, errors.New("STUB")
}
