package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/snapshot"
)

// openLog opens and reads the log, and learns who this node is.
func (n *Node) openLog(dir string) error {
	made, named, err := checkStore(dir, n.cfg.LogStore)
	if err != nil {
		return err
	}
	store := cmp.Or(made, n.cfg.LogStore, NewStore)
	n.store = store
	path := logPath(dir, store)
	if noLog(dir, store) {
		if !absent(filepath.Join(dir, identityFile)) {
			return damagedLog(path, errors.New("it is missing, though this directory is a node's"))
		}
		if err := writeStore(dir, store); err != nil {
			return err
		}
		if err := createLog(dir, store); err != nil {
			return err
		}
		named = true
	}
	opened, err := openLogOf(dir, store, false)
	if err != nil {
		return err
	}
	file := n.cfg.Write.around(opened)
	n.logs = &logStore{file: file, path: path, step: deleteStep(store), disk: n.disk, onEntry: n.receipts.note, at: fsm.EntryTime, readable: fsm.CheckVersion}
	n.logs.onConfiguration = func(index uint64, c raft.Configuration) { n.configs.noteStored(n.serverID(), index, c.Servers) }
	n.stable = &stableStore{file: file, path: path, disk: n.disk, marks: &n.logs.marks}
	if n.cache, err = raft.NewLogCache(cachedEntries, n.logs); err != nil {
		return err
	}
	if err := n.stable.check(); err != nil {
		return err
	}
	if err := n.restoreIdentity(dir); err != nil {
		return err
	}
	if last, err := n.logs.LastIndex(); err == nil && last > 0 && absent(filepath.Join(dir, identityFile)) {
		return untrusted{fmt.Errorf("data directory %s holds a raft log and no %s file: put the file back, if there is a copy", dir, identityFile)}
	}
	if n.raftID, _, err = loadIdentity(dir, n.cfg.ID); err != nil {
		return err
	}
	if err := n.logs.scan(); err != nil {
		return err
	}
	return n.nameStore(dir, made, named)
}

// nameStore writes which store keeps the log, if the directory does not say so.
func (n *Node) nameStore(dir, made string, named bool) error {
	for _, other := range LogStores {
		if other != n.store && present(logPath(dir, other)) {
			n.log.Warn("a log that is not used takes room; `limitd migrate-log` was interrupted, or finds it out of place: run it again, with the node stopped, and it goes",
				"unused", logPath(dir, other), "store", n.store)
		}
	}
	if named {
		return nil
	}
	if present(filepath.Join(dir, storeFile)) || made == StoreWal {
		n.log.Warn("the file that names the log store is written anew, by what is there", "file", filepath.Join(dir, storeFile), "store", made)
	}
	return writeStore(dir, made)
}

// restoreIdentity writes an identity file that is missing or damaged anew: a whole
// raft.db knows whose it is.
func (n *Node) restoreIdentity(dir string) error {
	raftID := n.logs.marks.get().raftID
	if nodeID(raftID) != n.cfg.ID {
		return nil // loadIdentity tells
	}
	path := filepath.Join(dir, identityFile)
	b, err := os.ReadFile(path)
	if err == nil {
		_, err = parseIdentity(b)
	}
	if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errIdentity) {
		return nil
	}
	n.log.Warn("the identity file is written anew, by what the log says", "file", path, "raft_id", raftID, "reason", err)
	return writeIdentity(path, raftID)
}

// openSnapshots opens the snapshot file.
func (n *Node) openSnapshots(dir string) error {
	s, err := snapshot.OpenStore(dir, n.snapshotOptions())
	if errors.Is(err, snapshot.ErrDamaged) {
		s, err = n.replaceSnapshot(err)
	}
	if err != nil {
		return err
	}
	n.snaps.Store(s)
	if rc, ok := s.Receipt(); ok {
		n.receipts.restore(rc)
	}
	n.fsm = fsm.New(s)
	if n.cfg.SnapshotPortion > 0 {
		n.fsm.SetPortion(n.cfg.SnapshotPortion)
	}
	return nil
}

// snapshots is the snapshot file. A damaged one is replaced while raft starts,
// when peers may ask for this node's status already.
func (n *Node) snapshots() *snapshot.Store { return n.snaps.Load() }

func (n *Node) snapshotOptions() snapshot.Options {
	return snapshot.Options{
		Applied: n.handedOn, OnInstall: n.installed, Receipt: n.receipts.saved, Progress: n.installMoved, Stopping: n.isStopping,
		Note: n.logs.marks.note, Writes: func() uint8 { return n.writes().stream },
	}
}

// handedOn is the newest index that the state machine has applied or will.
func (n *Node) handedOn() uint64 {
	if r := n.raft.Load(); r != nil {
		return r.AppliedIndex()
	}
	return n.fsm.Applied()
}

// replaceSnapshot sets a damaged snapshot file aside, if the log holds everything
// from the first entry on and can rebuild the state.
func (n *Node) replaceSnapshot(damage error) (*snapshot.Store, error) {
	first, err := n.logs.FirstIndex()
	if err != nil {
		return nil, err
	}
	if first != 1 {
		return nil, fmt.Errorf("%w; the log does not reach back to the first entry, so the state cannot be rebuilt here", damage)
	}
	aside, err := snapshot.SetAside(n.cfg.DataDir)
	if err != nil {
		return nil, errors.Join(damage, err)
	}
	n.log.Warn("the snapshot file is damaged; it is set aside and the state is rebuilt from the log", "reason", damage, "file", aside)
	return snapshot.OpenStore(n.cfg.DataDir, n.snapshotOptions())
}

// loadFailed is called when raft could not load the snapshot. If that is because
// a record is damaged, the file is replaced, and nil says: try again.
func (n *Node) loadFailed(cause error) error {
	metas, err := n.snapshots().List()
	if err != nil || len(metas) == 0 {
		return cause
	}
	if err = n.readSnapshot(metas[0].ID); !errors.Is(err, snapshot.ErrDamaged) {
		return cause
	}
	if err := n.snapshots().Close(); err != nil {
		return err
	}
	s, err := n.replaceSnapshot(err)
	if err != nil {
		return err
	}
	n.snaps.Store(s)
	return s.SaveLocal()
}

// readSnapshot reads all records of the snapshot file.
func (n *Node) readSnapshot(id string) error {
	_, rc, err := n.snapshots().Open(id)
	if err != nil {
		return err
	}
	defer rc.Close()
	r, _ := snapshot.FromReader(rc)
	return r.Each(func(snapshot.Record) error { return nil })
}

// continuity is what must happen to a log so that it continues a snapshot.
type continuity uint8

const (
	continues continuity = iota // keep it
	diverges                    // delete it: it is older than the snapshot, or another history
	gap                         // refuse: entries between the two are gone
)

// judgeLog compares the log's bounds and its term at the snapshot's index (0: it
// has no such entry) with the snapshot. Without a snapshot, index and term are 0.
func judgeLog(first, last, termAt, index, term uint64) continuity {
	switch {
	case last == 0, first == index+1:
		return continues
	case first > index+1:
		return gap
	case index > 0 && termAt == term:
		return continues
	}
	return diverges
}

// fitLog makes the log continue the snapshot at index and term. It returns the
// last index that the log had if it was deleted, else 0.
func (n *Node) fitLog(index, term uint64) (deleted uint64, err error) {
	first, err := n.logs.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := n.logs.LastIndex()
	if err != nil {
		return 0, err
	}
	var at raft.Log
	if err := n.logs.read(index, &at); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		return 0, damagedLog(n.logs.path, err)
	}
	if index > 0 {
		defer n.logs.term.note(index, term) // after what is deleted
	}
	if base := n.logs.marks.get().base; last == 0 && index < base {
		return 0, lostBetween(n.logs.path, n.snapshots().Path(), base, index)
	}
	switch judgeLog(first, last, at.Term, index, term) {
	case gap:
		return 0, lostBetween(n.logs.path, n.snapshots().Path(), first-1, index)
	case diverges:
		n.log.Info("the log does not continue the snapshot and is deleted", "first", first, "last", last, "snapshot", index)
		n.logs.marks.update(func(m *mark) { m.base = index })
		return last, n.cache.DeleteRange(first, last)
	}
	return 0, nil
}

// checkContinuity is what is done before raft starts. Raft itself would keep a
// log of another history beside the snapshot and send its entries to others, and
// panic over a gap.
func (n *Node) checkContinuity() error {
	if err := n.checkMarks(); err != nil {
		return err
	}
	m, _ := n.snapshots().Meta()
	if _, err := n.fitLog(m.Index, m.Term); err != nil {
		return err
	}
	if err := n.openMarks(); err != nil {
		return err
	}
	return n.findConfiguration(m)
}

// findConfiguration takes the newest configuration out of the snapshot and the log.
func (n *Node) findConfiguration(m snapshot.Meta) error {
	kept := indexedConfiguration{m.ConfigurationIndex, m.Configuration.Servers}
	logged := kept
	if i := n.logs.configuration; i > 0 {
		var l raft.Log
		if err := n.logs.read(i, &l); err == nil {
			logged = indexedConfiguration{i, raft.DecodeConfiguration(l.Data).Servers}
		} else if !errors.Is(err, raft.ErrLogNotFound) {
			return damagedLog(n.logs.path, err)
		}
	}
	n.stored = raft.Configuration{Servers: logged.servers}
	n.configs.load(n.serverID(), kept, logged)
	return nil
}

// installed is called when a snapshot of the leader has replaced the file, before
// raft knows. Raft remembers the end of its log: if that was above the snapshot
// and is deleted now, only a new process forgets it.
func (n *Node) installed(index, term uint64) error {
	deleted, err := n.fitLog(index, term)
	if err == nil && deleted > index {
		err = fmt.Errorf("an installed snapshot (entry %d) replaced a log of another history (up to %d): start the node again", index, deleted)
	}
	if err != nil {
		n.fatal(err)
	}
	return err
}
