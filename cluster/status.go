package cluster

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// Status is what RL.CLUSTER STATUS, INFO and RL.TIME show.
type Status struct {
	ID, RaftID, LeaderID, LeaderRaftID, LeaderResp string // LeaderResp: its RESP address
	Role                                           string // leader, follower, candidate, nonvoter; before it is a member: waiting, joining; afterwards: none
	ClusterID                                      string // hex; "": none yet
	Generation, Term, Commit, Applied, Last        uint64
	Time, Offset, WallOffset                       int64 // estimate of cluster time now; calendar offset; cluster time minus wall clock, ns
	LogFirst, LogLast, SnapshotIndex               uint64
	Saves                                          fsm.Saves
	Unsaved                                        int // records that changed since the last snapshot began
	Voters                                         int
	DiskFree                                       int64 // bytes
	DiskLow                                        bool
	Ready                                          bool // leader: may decide; follower: in touch

	WritesEntry uint8 // newest version of the entry that all members read; a leader writes it

	LogStore     string        // that keeps the log
	LogWrites    uint64        // since the start
	LogWriteP99  time.Duration // upper bound, of those
	BoundedClock uint64        // how often a clock by which this node leads, or was to lead, was more than 400 days ahead
}

// Status says how the node stands.
func (n *Node) Status() Status {
	st := n.fsm.State()
	now, touch := n.Touch()
	id, _ := n.leader()
	leader := n.member(id)
	s := Status{
		ID: n.cfg.ID, RaftID: n.raftID,
		LeaderID: leader.ID, LeaderRaftID: string(id), LeaderResp: leader.Resp,
		Role:       n.role(),
		Generation: st.Generation, Applied: st.Applied, Last: st.Last,
		Time: now, Offset: st.Offset, WallOffset: now - n.clock.Wall(),
		Voters:   n.voters(),
		DiskFree: n.diskFree.Load(), DiskLow: n.DiskLow(),
		Ready:        touch,
		BoundedClock: n.boundedBases.Load(),
		LogStore:     n.store,
		WritesEntry:  n.writes().entry,
	}
	if id := st.ClusterID; id != [16]byte{} {
		s.ClusterID = hex.EncodeToString(id[:])
	}
	if r := n.raft.Load(); r != nil {
		s.Term, s.Commit = r.CurrentTerm(), r.CommitIndex()
		if r.State() == raft.Leader {
			s.Ready = n.Leading()
		}
	}
	s.Saves = n.fsm.Saves()
	s.Unsaved, _ = n.fsm.Pending()
	if n.disk.failed() == nil {
		s.LogFirst, _ = n.logs.FirstIndex()
		s.LogLast, _ = n.logs.LastIndex()
	}
	if m, ok := n.snapshots().Meta(); ok {
		s.SnapshotIndex = m.Index
	}
	s.LogWriteP99, s.LogWrites = n.disk.latency.quantile(0.99)
	return s
}

// role is what this node is in raft, as far as it knows itself: one that was taken in
// a moment ago, and runs raft on an empty log, does not know it yet.
func (n *Node) role() string {
	var servers []raft.Server
	if r := n.raft.Load(); r != nil {
		switch r.State() {
		case raft.Leader:
			return "leader"
		case raft.Candidate:
			return "candidate"
		}
		servers = n.configuration().Servers
	}
	for _, s := range servers {
		switch {
		case s.ID != n.serverID():
		case s.Suffrage == raft.Voter:
			return "follower"
		default:
			return "nonvoter"
		}
	}
	switch {
	case len(servers) > 0:
		return "none"
	case n.joining.wants() != joinsNot:
		return "joining"
	}
	return "waiting"
}

func (n *Node) voters() (count int) {
	for _, s := range n.configuration().Servers {
		if s.Suffrage == raft.Voter {
			count++
		}
	}
	return count
}

// ownStatus is what this node tells its peers.
func (n *Node) ownStatus() peerStatus {
	s := peerStatus{
		RaftID: n.raftID, Empty: n.empty(), Listed: nodeIDs(n.cfg.Members),
		Resp: n.cfg.self().Resp, Applied: n.fsm.Applied(), Time: n.fsm.Time(), Version: n.cfg.Version,
		ReadsEntry: n.reads.entry, ReadsStream: n.reads.stream,
		DiskFree: n.diskFree.Load(), DiskLow: n.diskLow.Load(), Wall: n.clock.Wall(),
	}
	s.setLineage(n.lineage())
	_, inTouch := n.Touch()
	s.Leads = n.Leading()
	s.Current = s.Leads || inTouch
	s.setConfiguration(n.newestConfiguration())
	s.WantsVote = n.joining.wants() == joinsAsVoter && !n.configs.hasVoted()
	return s
}

// Hashes is the chain hash at the multiples of 256 that were applied last, and at
// the newest applied index.
func (n *Node) Hashes() []fsm.HashPoint { return n.fsm.Hashes() }

// SaveSnapshot writes the state as a verified stream into the directory backups of
// the data directory and returns the file's path.
func (n *Node) SaveSnapshot() (string, error) {
	r := n.raft.Load()
	if r == nil {
		return "", errors.New("save snapshot: this node is not in a cluster yet")
	}
	if err := n.takeSnapshot(r); err != nil {
		return "", fmt.Errorf("save snapshot: %w", err)
	}
	dir, err := filepath.Abs(filepath.Join(n.cfg.DataDir, backupsDir))
	if err != nil {
		return "", fmt.Errorf("save snapshot: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("save snapshot: %w", err)
	}
	m, _ := n.snapshots().Meta()
	at := time.Unix(0, n.clock.Wall()).UTC().Format("20060102T150405Z")
	path := filepath.Join(dir, fmt.Sprintf("limitd-%s-%d.snapshot", at, m.Index))
	if _, err := n.snapshots().SaveTo(path); err != nil {
		return "", err
	}
	return path, nil
}
