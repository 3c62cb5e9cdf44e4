package main

import (
	"errors"

	"limitd/cluster"
	"limitd/resp"
)

var _ resp.Admin = admin{}

// admin shows the node to the wire, in the wire's own types.
type admin struct {
	node    *cluster.Node
	change  func(cluster.Change) error
	loading func() bool
}

func (a admin) Status() resp.Status {
	s := a.node.Status()
	return resp.Status{
		ID:         s.ID,
		RaftID:     s.RaftID,
		LeaderID:   s.LeaderID,
		LeaderAddr: s.LeaderResp,
		Role:       s.Role,
		ClusterID:  s.ClusterID,
		Generation: s.Generation,
		Term:       s.Term,
		Commit:     s.Commit,
		Applied:    s.Applied,
		Last:       s.Last,
		Time:       s.Time,
		Offset:     s.Offset,
		WallOffset: s.WallOffset,
		Voters:     s.Voters,
		DiskFree:   s.DiskFree,
		DiskLow:    s.DiskLow,
		Ready:      s.Ready,
		Loading:    a.loading(),

		Saving:     s.Saves.Running,
		Saved:      s.Saves.Saved,
		SaveTook:   s.Saves.Took,
		SaveFailed: s.Saves.Failed,
		Unsaved:    s.Unsaved,

		WritesEntry:  s.WritesEntry,
		LogStore:     s.LogStore,
		LogWrites:    s.LogWrites,
		LogWriteP99:  s.LogWriteP99,
		BoundedClock: s.BoundedClock,
	}
}

func (a admin) Nodes() []resp.NodeInfo {
	nodes := a.node.Nodes()
	out := make([]resp.NodeInfo, len(nodes))
	for i, n := range nodes {
		out[i] = resp.NodeInfo(n)
	}
	return out
}

func (a admin) Hashes() []resp.HashPoint {
	points := a.node.Hashes()
	out := make([]resp.HashPoint, len(points))
	for i, p := range points {
		out[i] = resp.HashPoint(p)
	}
	return out
}

func (a admin) Change(c resp.Change) error {
	err := a.change(cluster.Change{
		Op:       cluster.ChangeOp(c.Op),
		ID:       c.ID,
		Peer:     c.Peer,
		NonVoter: c.NonVoter,
		Force:    c.Force,
	})
	if errors.Is(err, cluster.ErrNotNow) {
		return notNow{err}
	}
	return err
}

// notNow is an error that wraps cluster.ErrNotNow, as the wire knows it.
type notNow struct{ error }

func (notNow) Is(target error) bool { return target == resp.ErrNotNow }

func (a admin) SaveSnapshot() (string, error) { return a.node.SaveSnapshot() }
