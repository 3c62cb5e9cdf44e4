package cluster

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/snapshot"
)

// How nodes of two releases run in one cluster. Each node tells in its status the
// newest version of each format that it reads (it reads all from 1 on). A leader
// writes, turn by turn, the newest that every member of the configuration reads, and
// sends a snapshot in one that its receiver reads. A member that was not heard of
// since this process started counts as one that reads version 1: that is slow to
// use what is new, and never wrong. A node that still meets what it does not read
// (it was upgraded, and then downgraded) stops before it takes it into its log.

// ErrVersion is why a node stops, or does not start, that holds or was sent what a
// newer limitd wrote. Nothing is damaged.
var ErrVersion = errors.New("a newer limitd is needed")

// newer wraps an error about a version that this limitd does not read into
// [ErrVersion], and leaves others as they are, and one that it has wrapped before.
func newer(err error) error {
	if errors.Is(err, ErrVersion) {
		return err
	}
	if errors.Is(err, fsm.ErrVersion) || errors.Is(err, snapshot.ErrVersion) {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return err
}

// versions are the newest versions of the formats that somebody reads.
type versions struct{ entry, stream uint8 }

var (
	ownVersions   = versions{fsm.ReadsEntry, snapshot.Reads}
	firstVersions = versions{1, 1}
)

func (v versions) atMost(o versions) versions {
	return versions{min(v.entry, o.entry), min(v.stream, o.stream)}
}

// reads is what the node of the status reads; one that tells nothing reads version 1.
func (s *peerStatus) reads() versions {
	return versions{max(s.ReadsEntry, 1), max(s.ReadsStream, 1)}
}

// readsOf is what a member reads, as far as this node has heard.
func (n *Node) readsOf(id raft.ServerID) versions {
	p, ok := n.polledPeer(nodeID(string(id)))
	if !ok || p.status.RaftID != string(id) { // another disk had that node id
		return firstVersions
	}
	return p.status.reads()
}

// writes are the newest versions that every member reads, this node among them.
func (n *Node) writes() versions {
	w := n.reads
	if w == firstVersions {
		return w
	}
	for _, s := range n.configuration().Servers {
		if s.ID != n.serverID() {
			w = w.atMost(n.readsOf(s.ID))
		}
	}
	return w
}

// tellVersions logs when a leader begins to write other versions. One goroutine calls it.
func (n *Node) tellVersions(told *versions) {
	if w := n.writes(); n.Leading() && w != *told {
		if *told != (versions{}) {
			n.log.Info("the members read other versions of the formats than before", "entries_written_in", w.entry, "snapshots_written_in", w.stream)
		}
		*told = w
	}
}

// unreadable says why a node with status s cannot join: it does not read what is in
// use, which is what the log holds and what this node would write as the leader.
// Snapshots are sent in a version that their receiver reads.
func (n *Node) unreadable(s peerStatus) error {
	inUse, err := n.logs.newestVersion()
	if err != nil {
		return err
	}
	inUse = max(inUse, n.writes().entry)
	if reads := s.reads().entry; reads < inUse {
		return fmt.Errorf("%s (limitd %s) reads entries up to version %d, and version %d is in use here: start it with the limitd that the members run",
			s.RaftID, s.Version, reads, inUse)
	}
	return nil
}

// fitStream has the snapshot that is about to be sent to a member written in a
// version that it reads.
func (n *Node) fitStream(id raft.ServerID, req *raft.InstallSnapshotRequest, data io.Reader) error {
	rc, _ := data.(io.ReadCloser)
	r, ok := snapshot.FromReader(rc)
	if !ok {
		return fmt.Errorf("send a snapshot to %s: %T is none of the local store", id, data)
	}
	size, err := r.WriteVersion(n.reads.atMost(n.readsOf(id)).stream)
	req.Size = size
	return err
}
