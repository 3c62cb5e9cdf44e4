package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// A copy of raft.db that is whole and old is as bad as a damaged one: the node has
// forgotten entries that it acknowledged and votes that it gave, and nothing in the
// file says so. So the node keeps two marks that must fit together. raft.db counts
// its incarnations: one more at each start, and one more before the log is cut at
// its end, as a new leader may ask. The snapshot file notes the incarnation, how
// far the log reached in it, the term and the vote, with every snapshot, with every
// receipt and when the node stops.
//
// raft.db is always written first, so it is never behind the note, except as an old
// copy. An old snapshot file is harmless if the log continues it.
//
// FORMAT.md describes both.

// mark is what raft.db holds, as far as it is on disk.
type mark struct {
	raftID      string
	incarnation uint64
	base        uint64 // index of the snapshot that the log went on from when it was emptied; not noted

	index, term uint64 // end of the log, 0: it is empty; term 0: not known
	current     uint64 // CurrentTerm
	voteTerm    uint64
	votedFor    string // in voteTerm
}

const (
	incarnationKey = "Incarnation"
	noteVersion    = 1
)

// marks is the newest mark.
type marks struct {
	mu sync.Mutex
	mark
	candidateOf uint64 // LastVoteTerm while its LastVoteCand is still to come
}

func (m *marks) get() mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mark
}

func (m *marks) update(f func(*mark)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.mark)
}

// valueStored takes down a value of the stable store. raft writes the term of a vote
// and then the candidate; only both make a vote.
func (m *marks) valueStored(key string, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch key {
	case "CurrentTerm":
		m.current = number(value)
	case "LastVoteTerm":
		m.candidateOf = number(value)
	case "LastVoteCand":
		m.voteTerm, m.votedFor = m.candidateOf, string(value)
	case incarnationKey:
		if len(value) >= 16 {
			m.incarnation, m.base, m.raftID = number(value), number(value[8:]), string(value[16:])
		}
	}
}

// number is the value of a stable store that is one; of another length it is damage,
// which Get tells.
func number(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// appendIncarnation appends what raft.db keeps under incarnationKey.
func (m mark) appendIncarnation(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, m.incarnation)
	dst = binary.BigEndian.AppendUint64(dst, m.base)
	return append(dst, m.raftID...)
}

// note is what the snapshot file keeps.
func (m *marks) note() []byte {
	v := m.get()
	if v.incarnation == 0 {
		return nil // not opened yet
	}
	return v.appendNote(nil)
}

func (m mark) appendNote(dst []byte) []byte {
	dst = append(dst, noteVersion)
	for _, n := range []uint64{m.incarnation, m.index, m.term, m.current, m.voteTerm} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	for _, s := range []string{m.raftID, m.votedFor} {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(s)))
		dst = append(dst, s...)
	}
	return dst
}

// decodeNote reads a note whose checksum was right.
func decodeNote(b []byte) (m mark, err error) {
	short := errors.New("the note of the log ends too early")
	if len(b) == 0 {
		return m, short
	}
	if b[0] != noteVersion {
		return m, fmt.Errorf("%w: the note of the log has version %d, this limitd reads %d", ErrVersion, b[0], noteVersion)
	}
	b = b[1:]
	for _, n := range []*uint64{&m.incarnation, &m.index, &m.term, &m.current, &m.voteTerm} {
		if len(b) < 8 {
			return m, short
		}
		*n, b = binary.LittleEndian.Uint64(b), b[8:]
	}
	for _, s := range []*string{&m.raftID, &m.votedFor} {
		if len(b) < 2 || len(b)-2 < int(binary.LittleEndian.Uint16(b)) {
			return m, short
		}
		n := 2 + int(binary.LittleEndian.Uint16(b))
		*s, b = string(b[2:n]), b[n:]
	}
	if len(b) != 0 {
		return m, errors.New("the note of the log is too long")
	}
	return m, nil
}

// firstMark is the mark of a node that an offline command makes: its log is empty and
// goes on from a snapshot at base, and it knows of term.
func firstMark(raftID string, base, term uint64) mark {
	return mark{raftID: raftID, incarnation: 1, base: base, current: term}
}

// behind says in what m, which raft.db holds, is behind what the snapshot file
// noted of it; "" if in nothing. termAt is the term of an entry of the log, 0 if it
// has no such entry.
func (m mark) behind(noted mark, termAt func(uint64) uint64) string {
	same := m.incarnation == noted.incarnation
	switch {
	case m.incarnation < noted.incarnation:
		return fmt.Sprintf("it is of start %d of this node, which was at start %d", m.incarnation, noted.incarnation)
	case m.current < noted.current:
		return fmt.Sprintf("its term is %d, and this node was in term %d", m.current, noted.current)
	case m.voteTerm < noted.voteTerm:
		return fmt.Sprintf("its newest vote is of term %d, and this node voted in term %d", m.voteTerm, noted.voteTerm)
	case m.voteTerm == noted.voteTerm && m.votedFor != noted.votedFor:
		return fmt.Sprintf("its vote in term %d went to %q, and this node voted for %q", m.voteTerm, m.votedFor, noted.votedFor)
	case same && m.index < noted.index:
		return fmt.Sprintf("it ends at entry %d, and this node had entry %d", m.index, noted.index)
	}
	if at := termAt(noted.index); same && at != 0 && noted.term != 0 && at != noted.term {
		return fmt.Sprintf("its entry %d is of term %d, and this node had one of term %d there", noted.index, at, noted.term)
	}
	return ""
}

// checkNote refuses files that are not of one node and one time: a raft.db that is
// read, the raft id of the identity file, and the note in the snapshot file at path,
// empty if it has none.
func (s *logStore) checkNote(raftID, path string, note []byte) error {
	have := s.marks.get()
	if have.raftID != "" && have.raftID != raftID {
		return otherNode(s.path, have.raftID, raftID)
	}
	if len(note) == 0 {
		return nil
	}
	noted, err := decodeNote(note)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if noted.raftID != raftID {
		return otherNode(path, noted.raftID, raftID)
	}
	var failed error
	behind := have.behind(noted, func(index uint64) uint64 {
		var l raft.Log
		if err := s.read(index, &l); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			failed = damagedLog(s.path, err)
		}
		return l.Term
	})
	if behind != "" {
		return staleLog(s.path, fmt.Sprintf("%s, as %s notes", behind, path))
	}
	return failed
}

// checkMarks is what is done before anything is done to the files.
func (n *Node) checkMarks() error {
	s := n.snapshots()
	if err := n.logs.checkNote(n.raftID, s.Path(), s.Note()); err != nil {
		return err
	}
	n.logs.marks.update(func(m *mark) { m.raftID = n.raftID })
	return nil
}

// openMarks begins an incarnation, in raft.db and then in the snapshot file.
func (n *Node) openMarks() error {
	if err := n.logs.incarnate(func(*mark) {}); err != nil {
		return err
	}
	return n.snapshots().SaveLocal()
}
