package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

const (
	commitTimeout = 25 * time.Millisecond // how soon an idle follower hears of a commit index
	maxAppend     = 8                     // entries of one request; they may have 256 KiB each
	cachedEntries = 64
)

// raftConfig is raft's configuration. What is not set here is off on purpose:
// BatchApplyCh leaves futures unanswered at a shutdown, RestoreCommittedLogs
// loses the configuration.
func (n *Node) raftConfig(notify chan<- bool) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = n.serverID()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = n.cfg.Heartbeat, n.cfg.Election, n.cfg.Lease
	c.CommitTimeout = commitTimeout
	c.MaxAppendEntries = maxAppend
	c.SnapshotInterval, c.SnapshotThreshold = n.cfg.SnapshotInterval, n.cfg.SnapshotThreshold
	c.TrailingLogs = maxTrailing
	c.ShutdownOnRemove = false // a node that is removed stops in order (removed.go)
	c.NoLegacyTelemetry = true
	c.NotifyCh = notify
	c.Logger = raftLogger(n.log)
	return c
}

// startRaft makes and starts raft over the stores; with a configuration it first
// writes that as the beginning of the log.
func (n *Node) startRaft(first *raft.Configuration) error {
	if n.isStopping() {
		return errStopped
	}
	notes := make(chan bool, 16)
	cfg := n.raftConfig(notes)
	n.trans = newTransport(n, n.peers.StreamLayer(), cfg.Logger)
	var r *raft.Raft
	err := n.guarded(func() (err error) {
		if first != nil {
			if err := n.bootstrapLog(cfg, *first); err != nil {
				return err
			}
		}
		r, err = raft.NewRaft(cfg, machine{n.fsm, n}, n.cache, n.stable, n.snapshots(), n.trans)
		if err == nil {
			return nil
		}
		if err = n.loadFailed(err); err == nil {
			r, err = raft.NewRaft(cfg, machine{n.fsm, n}, n.cache, n.stable, n.snapshots(), n.trans)
		}
		return err
	})
	if err != nil {
		n.trans.Close()
		return n.mend(fmt.Errorf("start raft: %w", err))
	}
	n.raft.Store(r)
	if n.isStopping() { // Close may have found no raft to stop
		n.stopRaft(r)
		return errStopped
	}
	n.setTrailing(r)

	seen := make(chan raft.Observation, 16)
	r.RegisterObserver(raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	}))
	n.background.Go(func() { n.watchLeadership(notes) })
	n.background.Go(func() { n.watchLeader(seen) })
	n.background.Go(func() { n.probe(r) })
	n.leaderNews.announce()
	if c := n.configuration().Servers; len(c) == 1 && c[0].ID == n.serverID() {
		n.trans.campaign() // there is nobody to wait for
	}
	return nil
}

// guarded runs f and turns the end of its goroutine by a failing store, or a
// panic of raft over one, into an error.
func (n *Node) guarded(f func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errors.New("a store failed")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
			if failed := n.disk.failed(); failed != nil {
				err = failed
			}
			result <- err
		}()
		err = f()
	}()
	return <-result
}

// bootstrapLog writes the first entry. A node that was stopped in the middle of
// it has a term and still an empty log.
func (n *Node) bootstrapLog(cfg *raft.Config, c raft.Configuration) error {
	err := raft.BootstrapCluster(cfg, n.cache, n.stable, n.snapshots(), n.trans, c)
	if errors.Is(err, raft.ErrCantBootstrap) && n.empty() {
		err = n.cache.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(c)})
	}
	return err
}

// empty says that neither log nor snapshot holds anything.
func (n *Node) empty() bool {
	last, err := n.logs.LastIndex()
	_, snapshot := n.snapshots().Meta()
	return err == nil && last == 0 && !snapshot
}

// shutdownTime is how long Close waits for raft; a disk that hangs must not keep
// the process.
const shutdownTime = 5 * time.Second

func (n *Node) stopRaft(r *raft.Raft) {
	done := make(chan struct{})
	go func() {
		r.Shutdown().Error()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(shutdownTime):
		n.log.Warn("raft did not stop in time")
	}
	n.trans.Close()
}
