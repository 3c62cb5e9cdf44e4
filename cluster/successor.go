package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// only is the configuration with one voter.
func only(raftID, peer string) raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(raftID), Address: raft.ServerAddress(peer)}}}
}

// succeed builds, in nextDir, the files of the node that rep makes of the survivor.
func (s *survivor) succeed(rep *replacement) error {
	next, err := makeNext(s.dir)
	if err != nil {
		return err
	}
	if err := snapshot.CopyFile(s.dir, next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	snapshot.Failpoint("recover.copied")
	s.state.SetGeneration(rep.Recovery.Generation)
	m := firstMark(rep.Recovery.NewRaftID, s.LastIndex(), s.term)
	if err := s.writeSnapshot(next, only(m.raftID, rep.Peer), m); err != nil {
		return err
	}
	snapshot.Failpoint("recover.snapshot")
	if err := s.compare(next); err != nil {
		return err
	}
	if err := makeLog(next, m, s.store); err != nil {
		return err
	}
	snapshot.Failpoint("recover.log")
	return nil
}

// writeSnapshot brings the copied file up to the last entry. It costs what the log
// changed. The receipt in the file stays: cluster time goes on from it. The note is of
// the new log.
func (s *survivor) writeSnapshot(next string, c raft.Configuration, m mark) error {
	store, err := snapshot.OpenStore(next, snapshot.Options{Note: func() []byte { return m.appendNote(nil) }})
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := s.state.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Release()
	sink, err := store.Create(raft.SnapshotVersionMax, s.LastIndex(), s.LastTerm, c, s.LastIndex(), nil)
	if err != nil {
		return err
	}
	return errors.Join(snap.Persist(sink), sink.Close())
}

// compare reads the new file and compares each record with the state in memory.
func (s *survivor) compare(next string) error {
	r, err := snapshot.OpenOffline(next)
	if err != nil {
		return err
	}
	defer r.Close()
	want, records := s.state.State(), 0
	if got := r.Meta(); got.Header != want.Header || got.Index != s.LastIndex() {
		return fmt.Errorf("%s was written as %+v at %d and reads as %+v at %d", filepath.Join(next, snapshotName), want.Header, s.LastIndex(), got.Header, got.Index)
	}
	t := s.state.Table()
	var state []byte
	err = r.Each(func(x snapshot.Record) error {
		records++
		ns, key, ident, err := snapshot.SplitName(x.Name)
		if err != nil {
			return err
		}
		var expiry int64
		var ok bool
		state, expiry, ok = t.Get(t.Hash(ns, key), ns, key, ident, state)
		if !ok || expiry != x.Expiry || !bytes.Equal(state, x.State) {
			return fmt.Errorf("%s: key %q reads otherwise than it was written", filepath.Join(next, snapshotName), key)
		}
		return nil
	})
	if err == nil && records != s.Records {
		err = fmt.Errorf("%s: %d records were written and %d are read", filepath.Join(next, snapshotName), s.Records, records)
	}
	return err
}

// makeLog makes, in next, the empty log of the node of m, in the store, and its
// identity.
func makeLog(next string, m mark, store string) error {
	if err := errors.Join(writeStore(next, store), createLog(next, store)); err != nil {
		return err
	}
	file, err := openLogOf(next, store, false)
	if err != nil {
		return err
	}
	set := func(key string, value []byte) error { return file.Set([]byte(key), sealValue([]byte(key), value)) }
	err = errors.Join(set(currentTermKey, binary.BigEndian.AppendUint64(nil, m.current)), set(incarnationKey, m.appendIncarnation(nil)))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return writeIdentity(filepath.Join(next, identityFile), m.raftID)
}
