package cluster

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// RestoreDir makes dataDir, which must not hold anything, the directory of the only
// voter of a new cluster that starts with the state saved in file, with the log store
// that is named, or NewStore. Cluster time goes on from the saved one, or from the wall clock of the
// first start if that is later.
func RestoreDir(file, dataDir string, self Member, store string) (Survey, error) {
	store = cmp.Or(store, NewStore)
	if err := checkEmpty(dataDir); err != nil {
		return Survey{}, err
	}
	saved, err := os.Open(file)
	if err != nil {
		return Survey{}, fmt.Errorf("saved state: %w", err)
	}
	defer saved.Close()
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return Survey{}, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := lockAnyDir(dataDir)
	if err != nil {
		return Survey{}, err
	}
	defer lock.Close()
	if err := checkEmpty(dataDir); err != nil { // once more, with the lock
		return Survey{}, err
	}
	rep := &replacement{By: byRestore, Peer: self.Peer, Recovery: Recovery{
		Survey: Survey{ID: self.ID}, NewRaftID: newRaftID(self.ID), Generation: 1,
	}}
	if err := rep.write(dataDir); err != nil {
		return Survey{}, err
	}
	s, err := restoreInto(saved, dataDir, rep, store)
	if err != nil {
		err = fmt.Errorf("restore %s into %s: %w", file, dataDir, err)
		return Survey{}, errors.Join(err, os.RemoveAll(filepath.Join(dataDir, nextDir)), os.Remove(filepath.Join(dataDir, replacementFile)))
	}
	if err := rep.finish(dataDir); err != nil {
		return Survey{}, fmt.Errorf("restore %s into %s: %w", file, dataDir, err)
	}
	return s, nil
}

// checkEmpty says what is in a directory that shall hold a new node.
func checkEmpty(dir string) error {
	if err := refuseUnfinished(dir); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, f := range files {
		switch f.Name() {
		case lockName, "lost+found":
		default:
			return fmt.Errorf("data directory %s is not empty (%s): restore makes a new node, so give it a new directory", dir, f.Name())
		}
	}
	return nil
}

// restoreInto builds the files of the new node in nextDir.
func restoreInto(saved *os.File, dataDir string, rep *replacement, store string) (Survey, error) {
	next, err := makeNext(dataDir)
	if err != nil {
		return Survey{}, err
	}
	s := Survey{ID: rep.Recovery.ID, RaftID: rep.Recovery.NewRaftID, Generation: rep.Recovery.Generation, LastTerm: 1, Voters: []string{rep.Recovery.NewRaftID}}
	if err := s.install(saved, next, only(s.RaftID, rep.Peer)); err != nil {
		return Survey{}, err
	}
	snapshot.Failpoint("restore.snapshot")
	if err := makeLog(next, s.firstMark(), store); err != nil {
		return Survey{}, err
	}
	snapshot.Failpoint("restore.log")
	return s, nil
}

// firstMark is what the new files tell of each other, once the index of the snapshot
// is known.
func (s *Survey) firstMark() mark { return firstMark(s.RaftID, s.SnapshotIndex, s.LastTerm) }

// install writes the saved state under a new cluster id, as the snapshot at its last
// batch.
func (s *Survey) install(saved *os.File, next string, c raft.Configuration) error {
	store, err := snapshot.OpenStore(next, snapshot.Options{Note: func() []byte { return s.firstMark().appendNote(nil) }})
	if err != nil {
		return err
	}
	defer store.Close()
	var (
		sink raft.SnapshotSink
		w    *snapshot.StreamWriter
	)
	head := func(h snapshot.Header) (err error) {
		rand.Read(h.ClusterID[:])
		h.Generation = s.Generation
		s.ClusterID, s.Last, s.Time = hex.EncodeToString(h.ClusterID[:]), h.Last, h.T
		s.SnapshotIndex = max(h.Last, 1)
		s.CommittedAtLeast = s.SnapshotIndex
		if sink, err = store.Create(raft.SnapshotVersionMax, s.SnapshotIndex, s.LastTerm, c, s.SnapshotIndex, nil); err == nil {
			w = snapshot.NewStreamWriter(sink, h)
		}
		return err
	}
	_, err = snapshot.ReadStream(saved, head, func(r snapshot.Record) error {
		s.Records++
		return w.Put(r)
	})
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		if sink != nil {
			sink.Cancel()
		}
		return err
	}
	return sink.Close()
}
