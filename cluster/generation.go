package cluster

import (
	"errors"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// lineage is this node's: that of the applied state or, before that is loaded, of
// the snapshot file or the log. A node that has just started has applied nothing
// until it hears of a commit index, and must be told from one that was wiped.
func (n *Node) lineage() lineage {
	h := n.fsm.State().Header
	if h.ClusterID == [16]byte{} {
		m, _ := n.snapshots().Meta()
		h = m.Header
	}
	if h.ClusterID == [16]byte{} {
		return n.logged
	}
	return lineage{h.ClusterID, h.Generation}
}

// allegiance is the lineage by which peers take this node: before it has one, that of
// the cluster that has invited it, so that no other one speaks to it any more.
func (n *Node) allegiance() lineage {
	of := n.lineage()
	if into := n.joining.into.Load(); into != nil && of.cluster == [16]byte{} {
		return *into
	}
	return of
}

// lineageEntries is how far into the log the cluster has its id at the latest: the
// first leader that commits a batch gives it one.
const lineageEntries = 256

// findLineage takes the lineage out of a log that begins with the cluster. The
// entry that gives it counts when a later one was decided on it, because then it
// took effect.
func (n *Node) findLineage() error {
	first, err := n.logs.FirstIndex()
	if err != nil || first != 1 {
		return err
	}
	var given lineage
	var at uint64
	for i := first; i <= lineageEntries; i++ {
		var l raft.Log
		if err := n.logs.read(i, &l); errors.Is(err, raft.ErrLogNotFound) {
			return nil
		} else if err != nil {
			return damagedLog(n.logs.path, err)
		}
		if l.Type != raft.LogCommand {
			continue
		}
		if base, ok := fsm.EntryBase(l.Data); ok && at > 0 && base >= at {
			n.logged = given
			return nil
		}
		if id, generation, ok := fsm.EntryCluster(l.Data); ok {
			given, at = lineage{id, generation}, i
		}
	}
	return nil
}
