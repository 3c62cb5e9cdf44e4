package cluster

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/snapshot"
)

const snapshotName = snapshot.FileName

// survivor is a stopped node, and the state that its snapshot and all of its log
// make, committed or not.
type survivor struct {
	Survey
	dir   string
	store string // that keeps its log
	state *fsm.FSM
	term  uint64 // the newest that the node knew of

	servers []raft.Server // of the newest configuration
}

// readSurvivor reads a data directory and writes nothing. An error names the file
// that cannot be used, and what is left to do.
func readSurvivor(dir string) (*survivor, error) {
	s := &survivor{dir: dir, state: fsm.New(nil)}
	var err error
	if s.store, _, err = madeWith(dir); err != nil {
		return nil, err
	}
	s.store = cmp.Or(s.store, NewStore)
	if s.RaftID, err = readIdentity(dir); err != nil {
		return nil, err
	}
	s.ID = nodeID(s.RaftID)
	snap, err := s.readSnapshot()
	if err != nil {
		return nil, err
	}
	if err := s.readLog(snap); err != nil {
		return nil, err
	}
	st := s.state.State()
	if st.ClusterID == [16]byte{} {
		return nil, fmt.Errorf("data directory %s: node %s never learnt of a decision, so there is nothing to recover: %s", dir, s.ID, otherSource)
	}
	s.ClusterID, s.Generation = hex.EncodeToString(st.ClusterID[:]), st.Generation
	s.Last, s.Time = st.Last, st.T
	s.CommittedAtLeast = max(s.CommittedAtLeast, s.SnapshotIndex)
	s.Uncertain = s.LastIndex() - s.CommittedAtLeast
	s.Records = s.state.Count()
	s.term = max(s.term, s.LastTerm)
	return s, nil
}

// readIdentity is the raft id of the node whose directory it is.
func readIdentity(dir string) (string, error) {
	path := filepath.Join(dir, identityFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: it says which node this is; restore it, or %s", err, otherSource)
	}
	raftID, err := parseIdentity(b)
	if err != nil {
		return "", fmt.Errorf("%s: %w: restore it, or %s", path, err, otherSource)
	}
	return raftID, nil
}

// readSnapshot loads the snapshot, if there is one.
func (s *survivor) readSnapshot() (m snapshot.Meta, err error) {
	r, err := snapshot.OpenOffline(s.dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, snapshot.ErrNoSnapshot) {
		return m, nil // the log must reach back to the first entry
	}
	if err == nil {
		defer r.Close()
		m = r.Meta()
		err = s.state.Restore(r)
	}
	if errors.Is(err, snapshot.ErrDamaged) {
		return m, fmt.Errorf("%w; if %s reaches back to the first entry, the state can do without this file: move it away and try again; else %s", err, logNames[s.store], otherSource)
	}
	if err != nil {
		return m, fmt.Errorf("%w: %s", err, otherSource)
	}
	s.SnapshotIndex, s.LastTerm = m.Index, m.Term
	s.listServers(m.Configuration)
	return m, nil
}

func (s *survivor) listServers(c raft.Configuration) {
	s.servers, s.Voters, s.NonVoters = c.Servers, nil, nil
	for _, sv := range c.Servers {
		if sv.Suffrage == raft.Voter {
			s.Voters = append(s.Voters, string(sv.ID))
		} else {
			s.NonVoters = append(s.NonVoters, string(sv.ID))
		}
	}
}

// leadsAlone says that the node needs nobody's vote, at the address of self.
func (s *survivor) leadsAlone(self Member) bool {
	i := slices.IndexFunc(s.servers, func(sv raft.Server) bool { return sv.Suffrage == raft.Voter })
	return len(s.Voters) == 1 && s.Voters[0] == s.RaftID && string(s.servers[i].Address) == self.Peer
}

// readLog checks the whole log and applies what comes after the snapshot.
func (s *survivor) readLog(snap snapshot.Meta) error {
	path := logPath(s.dir, s.store)
	err := s.openedLog(path, func(logs *logStore) error {
		first, last, err := logBounds(logs.file)
		if err != nil {
			return err
		}
		if err := s.checkNote(logs, last); err != nil {
			return err
		}
		var at raft.Log
		if err := logs.read(snap.Index, &at); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			return err
		}
		switch judgeLog(first, last, at.Term, snap.Index, snap.Term) {
		case gap:
			return fmt.Errorf("it starts at entry %d, and the snapshot ends at %d: what is between is lost", first, snap.Index)
		case diverges:
			return nil // older than the snapshot, or another history; a start would delete it
		}
		if last > 0 {
			s.LogFirst, s.LogLast = first, last
		}
		for i := s.LogFirst; i <= last && last > 0; i++ {
			if err := s.take(logs, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		if !errors.As(err, &untrusted{}) { // else it names the file
			err = fmt.Errorf("raft log %s cannot be used: %w", path, err)
		}
		return fmt.Errorf("%w; %s", err, otherSource)
	}
	return nil
}

// checkNote refuses an old copy of the log, whose last entry is at index last.
func (s *survivor) checkNote(logs *logStore, last uint64) error {
	note, err := snapshot.ReadNote(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var end raft.Log
	if last > 0 {
		if err := logs.read(last, &end); err != nil {
			return err
		}
	}
	logs.marks.update(func(m *mark) { m.index, m.term = end.Index, end.Term })
	return logs.checkNote(s.RaftID, filepath.Join(s.dir, snapshotName), note)
}

// openedLog opens the file at path for reading, takes the term out of it and runs f.
func (s *survivor) openedLog(path string, f func(*logStore) error) error {
	file, err := openLogOf(s.dir, s.store, true)
	if err != nil {
		return err
	}
	defer file.Close()
	logs := &logStore{file: file, path: path}
	if err := (&stableStore{file: file, path: path, marks: &logs.marks}).check(); err != nil {
		return err
	}
	s.term = logs.marks.current
	return f(logs)
}

// currentTermKey is raft's.
const currentTermKey = "CurrentTerm"

func logBounds(b logFile) (first, last uint64, err error) {
	if first, err = b.FirstIndex(); err == nil {
		last, err = b.LastIndex()
	}
	return first, last, err
}

// take reads and checks the entry at index i and applies it, unless it is in the
// snapshot.
func (s *survivor) take(logs *logStore, i uint64) error {
	var l raft.Log
	if err := logs.read(i, &l); errors.Is(err, raft.ErrLogNotFound) {
		return fmt.Errorf("entry %d is missing between %d and %d", i, s.LogFirst, s.LogLast)
	} else if err != nil {
		return err
	}
	if base, ok := fsm.EntryBase(l.Data); ok && l.Type == raft.LogCommand {
		s.CommittedAtLeast = max(s.CommittedAtLeast, base) // it was applied where this entry was decided
	}
	if i <= s.SnapshotIndex {
		return nil
	}
	s.LastTerm = l.Term
	switch l.Type {
	case raft.LogCommand:
		s.state.Apply(&l)
	case raft.LogConfiguration:
		c := raft.DecodeConfiguration(l.Data)
		s.listServers(c)
		s.state.StoreConfiguration(i, c)
	}
	return s.state.Halted()
}
