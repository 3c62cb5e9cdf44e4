package cluster

import (
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// logVersions knows by the version of an entry an index above which the log holds no
// entry of it.
type logVersions [256]atomic.Uint64

func (v *logVersions) note(l *raft.Log) {
	if l.Type == raft.LogCommand && len(l.Data) > 0 {
		v[l.Data[0]].Store(l.Index)
	}
}

// cut takes down that the entries from lo on are gone.
func (v *logVersions) cut(lo uint64) {
	for i := range v {
		if v[i].Load() >= lo {
			v[i].Store(lo - 1)
		}
	}
}

// newestVersion is the highest version of an entry that the log holds, 1 if it holds none.
func (s *logStore) newestVersion() (uint8, error) {
	first, err := s.FirstIndex()
	if err != nil {
		return 0, err
	}
	for v := len(s.versions) - 1; v > 1 && first > 0; v-- {
		if s.versions[v].Load() >= first {
			return uint8(v), nil
		}
	}
	return 1, nil
}

// checkVersions refuses entries of a version that this node does not read. They are
// refused before they are in the log, so that it never counts for their majority, and
// never leads with them.
func (s *logStore) checkVersions(logs []*raft.Log) error {
	for _, l := range logs {
		if l.Type != raft.LogCommand || s.readable == nil {
			continue
		}
		if err := s.readable(l.Data); err != nil {
			return newer(fmt.Errorf("entry %d of the log: %w", l.Index, err))
		}
	}
	return nil
}

// checkVersions refuses a log that holds an entry that is not in the snapshot and that
// this node does not read: raft would take part in elections with it.
func (n *Node) checkVersions() error {
	m, _ := n.snapshots().Meta()
	last, err := n.logs.LastIndex()
	if err != nil {
		return err
	}
	var unknown bool
	for v := range n.logs.versions {
		unknown = unknown || (v < 1 || v > int(n.reads.entry)) && n.logs.versions[v].Load() > m.Index
	}
	for i := m.Index + 1; unknown && i <= last; i++ {
		var l raft.Log
		if err := n.logs.read(i, &l); err != nil {
			return damagedLog(n.logs.path, err)
		}
		if err := n.logs.checkVersions([]*raft.Log{&l}); err != nil {
			return err
		}
	}
	return nil
}
