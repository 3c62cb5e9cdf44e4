package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A cluster that lost its majority for good decides nothing any more. An offline
// recovery makes one of the survivors the only voter of the same cluster, with all
// that its log holds, and the others join it again.
//
// What an entry of the log did is kept even if it was perhaps never committed: to
// charge too much is safe, to forget a charge is not. What others agreed on and
// this node never got is lost, and nobody can say what it was.
//
// Nodes that were left behind may come back with their data. The recovered node has
// a new raft id, so no member of the old configuration is answered at its address,
// and the cluster a new generation, which every peer handshake compares.

// Survey is what the data directory of a stopped node holds. Entries are counted
// with what raft itself put into the log.
type Survey struct {
	ID               string   `json:"id"`
	RaftID           string   `json:"raft_id"`
	ClusterID        string   `json:"cluster_id"` // hex
	Generation       uint64   `json:"generation"`
	SnapshotIndex    uint64   `json:"snapshot_index"` // 0: none
	LogFirst         uint64   `json:"log_first"`      // 0: the log is empty, or older than the snapshot
	LogLast          uint64   `json:"log_last"`
	LastTerm         uint64   `json:"last_term"` // of the last entry
	Last             uint64   `json:"last"`      // last batch that takes effect when all of the log is applied
	Time             int64    `json:"time"`      // cluster time then, ns
	CommittedAtLeast uint64   `json:"committed_at_least"`
	Uncertain        uint64   `json:"uncertain"` // entries above it: perhaps never committed
	Records          int      `json:"records"`   // alive at Time
	Voters           []string `json:"voters"`    // raft ids, by the newest configuration
	NonVoters        []string `json:"non_voters"`
}

// LastIndex is the index of the last entry. Of two survivors, the one whose last
// entry has the higher term knows more; of equal terms, the one with the higher index.
func (s Survey) LastIndex() uint64 { return max(s.SnapshotIndex, s.LogLast) }

// Recovery says what Recover did.
type Recovery struct {
	Survey            // what was found
	NewRaftID  string `json:"new_raft_id"`    // the node's from now on
	Generation uint64 `json:"new_generation"` // the cluster's from now on
	Backup     string `json:"backup"`         // directory to which the old files were moved
}

// otherSource ends what is said of a directory that cannot be recovered.
const otherSource = "recover another surviving node, or restore a saved state (limitd snapshot restore)"

// Inspect reads the data directory of a stopped node, applies its log to a state in
// memory and says what came out. It changes nothing but the lock file.
func Inspect(dataDir string) (Survey, error) {
	lock, err := lockStopped(dataDir)
	if err != nil {
		return Survey{}, err
	}
	defer lock.Close()
	if err := refuseUnfinished(dataDir); err != nil {
		return Survey{}, err
	}
	s, err := readSurvivor(dataDir)
	if err != nil {
		return Survey{}, err
	}
	return s.Survey, nil
}

// Recover makes the stopped node of dataDir the only voter of its cluster, with all
// that its log holds, under a new raft id and the next generation. self is the node
// as it will be started. The old files are moved to a directory of their own in
// dataDir. A recovery that was interrupted is finished.
//
// No step can be interrupted so that the node starts with a part of it: until the
// new files are whole the old ones are untouched, and from then on the node does
// not start before a second Recover has put them in place.
func Recover(dataDir string, self Member) (Recovery, error) {
	lock, err := lockStopped(dataDir)
	if err != nil {
		return Recovery{}, err
	}
	defer lock.Close()
	rep, err := readReplacement(dataDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		rep, err = prepareRecovery(dataDir, self)
	case err == nil && rep.By != byRecover:
		err = rep.refusal(dataDir)
	case err == nil && (rep.Recovery.ID != self.ID || rep.Peer != self.Peer):
		err = fmt.Errorf("the recovery of %s that was interrupted was for node %s at peer address %s, this one is for %s at %s: finish that one first",
			dataDir, rep.Recovery.ID, rep.Peer, self.ID, self.Peer)
	}
	if err != nil {
		return Recovery{}, err
	}
	if err := rep.finish(dataDir); err != nil {
		return Recovery{}, fmt.Errorf("recover %s: %w; run it again", dataDir, err)
	}
	r := rep.Recovery
	r.Backup = filepath.Join(dataDir, r.Backup)
	return r, nil
}

// prepareRecovery builds the new files of the node and notes that they are whole.
func prepareRecovery(dataDir string, self Member) (*replacement, error) {
	s, err := readSurvivor(dataDir)
	if err != nil {
		return nil, err
	}
	if s.ID != self.ID {
		return nil, fmt.Errorf("data directory %s belongs to node %q (raft id %s), not to node %q", dataDir, s.ID, s.RaftID, self.ID)
	}
	if s.leadsAlone(self) {
		return nil, fmt.Errorf("node %s is the only voter of its cluster already: start it", s.ID)
	}
	backup, err := freeBackup(dataDir)
	if err != nil {
		return nil, err
	}
	rep := &replacement{By: byRecover, Peer: self.Peer, Recovery: Recovery{
		Survey: s.Survey, NewRaftID: newRaftID(s.ID), Generation: s.Survey.Generation + 1, Backup: backup,
	}}
	if err := s.succeed(rep); err != nil {
		os.RemoveAll(filepath.Join(dataDir, nextDir))
		return nil, fmt.Errorf("recover %s: %w; nothing was changed", dataDir, err)
	}
	return rep, rep.write(dataDir)
}

// ErrNoNode is for a directory that is no node's.
var ErrNoNode = errors.New("holds no node")

// NodeOf is the id of the node that a data directory belongs to, also while its
// recovery is unfinished. The error wraps ErrNoNode if the directory is there and holds none.
func NodeOf(dataDir string) (id string, err error) {
	if err := checkNodeDir(dataDir); err != nil {
		return "", err
	}
	rep, err := readReplacement(dataDir)
	if err == nil {
		return rep.Recovery.ID, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	raftID, err := readIdentity(dataDir)
	return nodeID(raftID), err
}

// lockStopped takes the data directory of a node that does not run.
func lockStopped(dataDir string) (*os.File, error) {
	if err := checkNodeDir(dataDir); err != nil {
		return nil, err
	}
	return lockAnyDir(dataDir)
}

// checkNodeDir refuses a directory that is no node's.
func checkNodeDir(dataDir string) error {
	if _, err := os.Stat(dataDir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, name := range []string{identityFile, logName, walName, snapshotName, replacementFile} {
		if _, err := os.Lstat(filepath.Join(dataDir, name)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("data directory %s %w: name the directory in which %s, %s (or %s) and %s of a surviving node are", dataDir, ErrNoNode, identityFile, logName, walName, snapshotName)
}
