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
	if err := s.writeSnapshot(next, only(rep.Recovery.NewRaftID, rep.Peer)); err != nil {
		return err
	}
	snapshot.Failpoint("recover.snapshot")
	if err := s.compare(next); err != nil {
		return err
	}
	if err := makeLog(next, rep.Recovery.NewRaftID, s.term); err != nil {
		return err
	}
	snapshot.Failpoint("recover.log")
	return nil
}

// writeSnapshot brings the copied file up to the last entry. It costs what the log
// changed. The receipt in the file stays: cluster time goes on from it.
func (s *survivor) writeSnapshot(next string, c raft.Configuration) error {
	store, err := snapshot.OpenStore(next, snapshot.Options{})
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

// makeLog makes, in next, an empty log of a node that knows of term, and its identity.
func makeLog(next, raftID string, term uint64) error {
	if err := createBolt(next); err != nil {
		return err
	}
	bolt, err := newBolt(filepath.Join(next, logName))
	if err != nil {
		return err
	}
	key := []byte(currentTermKey)
	err = bolt.Set(key, sealValue(key, binary.BigEndian.AppendUint64(nil, term)))
	if err = errors.Join(err, bolt.Close()); err != nil {
		return err
	}
	return writeIdentity(filepath.Join(next, identityFile), raftID)
}
