package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestMarksOfVersion1(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "marks_v1.golden"))
	if err != nil {
		t.Fatal(err)
	}
	m := mark{raftID: "n1-3f9a0c11", incarnation: 3, base: 7, index: 258, term: 5, current: 9, voteTerm: 8, votedFor: "127.0.0.1:7382"}
	got := fmt.Sprintf("note: %x\nIncarnation: %x\n", m.appendNote(nil), m.appendIncarnation(nil))
	if got != string(golden) {
		t.Errorf("the marks are\n%s, version 1 is\n%s", got, golden)
	}
	m.base = 0 // not noted
	if back, err := decodeNote(m.appendNote(nil)); err != nil || back != m {
		t.Errorf("%+v came back as %+v (%v)", m, back, err)
	}
}

func FuzzDecodeNote(f *testing.F) {
	f.Add(mark{raftID: "n1-3f9a0c11", votedFor: "127.0.0.1:7382"}.appendNote(nil))
	f.Add([]byte{noteVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeNote(b)
		if err == nil && string(m.appendNote(nil)) != string(b) {
			t.Errorf("%x was read as %+v, which is written otherwise", b, m)
		}
	})
}

// What a crash may leave must pass, and what only an old copy can look like must not.
func TestMarkThatIsBehindItsNote(t *testing.T) {
	noted := mark{raftID: "n1-3f9a0c11", incarnation: 3, index: 50, term: 5, current: 6, voteTerm: 6, votedFor: "b"}
	for _, tc := range []struct {
		name   string
		change func(*mark)
		termAt uint64 // of entry 50
		want   string // in the refusal; "": none
	}{
		{"as noted", func(*mark) {}, 5, ""},
		{"it went on, and died before the next note", func(m *mark) { m.index, m.current, m.voteTerm, m.votedFor = 60, 7, 7, "c" }, 5, ""},
		{"compacted up to the noted entry", func(m *mark) { m.index = 60 }, 0, ""},
		{"cut for a new leader, and nothing stored yet", func(m *mark) { m.incarnation, m.index = 4, 40 }, 0, ""},
		{"started, and died before the snapshot file noted it", func(m *mark) { m.incarnation = 4 }, 5, ""},
		{"a new term, and no vote in it", func(m *mark) { m.current = 7 }, 5, ""},

		{"of an earlier start", func(m *mark) { m.incarnation = 2 }, 5, "start 2"},
		{"of an earlier start, and it has more", func(m *mark) { m.incarnation, m.index, m.current = 2, 70, 9 }, 5, "start 2"},
		{"without its end", func(m *mark) { m.index = 49 }, 0, "ends at entry 49"},
		{"empty", func(m *mark) { m.index, m.term = 0, 0 }, 0, "ends at entry 0"},
		{"another history", func(m *mark) { m.index = 60 }, 4, "entry 50 is of term 4"},
		{"an older term", func(m *mark) { m.current = 5 }, 5, "term is 5"},
		{"an older term after a cut", func(m *mark) { m.incarnation, m.current = 4, 5 }, 5, "term is 5"},
		{"an older vote", func(m *mark) { m.voteTerm = 5 }, 5, "of term 5"},
		{"another vote in the same term", func(m *mark) { m.votedFor = "c" }, 5, `voted for "b"`},
	} {
		m := noted
		tc.change(&m)
		got := m.behind(noted, func(index uint64) uint64 {
			if index != 50 {
				t.Errorf("%s: asked for entry %d", tc.name, index)
			}
			return tc.termAt
		})
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Between the deletion of a log's end and the first entry after it, the log is
// shorter than noted. The note must not outlive the cut, wherever the process dies.
func TestLogThatIsCutIsNotTakenForAnOldCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := openTestLog(t, dir, func(error) {})
	mustStore(t, s, entries(1, 50))
	if err := s.incarnate(func(*mark) {}); err != nil {
		t.Fatal(err)
	}
	notes := []mark{s.marks.get()}
	bolt := s.file
	s.file = observedBolt{bolt, func() { notes = append(notes, s.marks.get()) }}
	if err := s.DeleteRange(41, 50); err != nil {
		t.Fatal(err)
	}
	notes = append(notes, s.marks.get())
	if end := notes[2]; end.index != 40 || end.term != 1 {
		t.Errorf("after the cut the log is noted to end at %d in term %d", end.index, end.term)
	}
	bolt.Close()
	again, stable := openTestLog(t, dir, func(error) {})
	stable.marks = &again.marks
	if err := errors.Join(stable.check(), again.scan()); err != nil {
		t.Fatal(err)
	}
	for i, noted := range notes {
		if why := again.marks.get().behind(noted, func(uint64) uint64 { return 0 }); why != "" {
			t.Errorf("noted in step %d: %s", i, why)
		}
	}
}

// observedBolt tells of each truncation before it is made.
type observedBolt struct {
	logFile
	truncated func()
}

func (b observedBolt) DeleteRange(lo, hi uint64) error {
	b.truncated()
	return b.logFile.DeleteRange(lo, hi)
}

// A log that cannot count its next incarnation must not be cut.
func TestLogIsNotCutBeforeThatIsOnDisk(t *testing.T) {
	t.Parallel()
	s, _ := openTestLog(t, t.TempDir(), func(error) {})
	mustStore(t, s, entries(1, 50))
	full := &brokenBolt{logFile: s.file}
	full.failWrites(syscall.ENOSPC)
	s.file = full
	before := s.marks.get()
	if err := s.DeleteRange(41, 50); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	s.disk.err.Store(nil)
	if got := bounds(t, s); got != [2]uint64{1, 50} || s.marks.get() != before {
		t.Errorf("the log goes from %d to %d, its mark is %+v", got[0], got[1], s.marks.get())
	}
}

// staleFile starts a stopped node once more, lets it write, stops it, and puts back
// the file as it was before.
func staleFile(t *testing.T, c *testCluster, n *testNode, name string) {
	t.Helper()
	path := filepath.Join(n.cfg.DataDir, name)
	old := treeOf(t, path)
	c.start(n)
	put(t, c.leader(), "after the copy")
	n.Close()
	putTree(t, path, old)
}

func TestOldCopyOfTheLogIsRefused(t *testing.T) {
	t.Parallel()
	c, n := oneStopped(t, false)
	staleFile(t, c, n, logNames[n.cfg.LogStore])
	for range 2 { // and the refusal leaves nothing that would let it in
		refuses(t, n, n.logs.path, "old copy", "start 1 ", "start 2", mendsAlone)
	}
	if _, err := Inspect(n.cfg.DataDir); err == nil || !strings.Contains(err.Error(), "old copy") {
		t.Errorf("a recovery would take it: %v", err)
	}
}

// A copy that was made while the node ran, of the same start.
func TestOldCopyOfTheSameStartIsRefused(t *testing.T) {
	t.Parallel()
	c, n := oneStopped(t, false)
	c.start(n)
	put(t, c.leader(), "before the copy")
	old := treeOf(t, n.logs.path)
	put(t, n, "after the copy")
	n.Close()
	putTree(t, n.logs.path, old)
	refuses(t, n, n.logs.path, "old copy", "ends at entry", mendsAlone)
}

func TestOldCopyOfTheSnapshotFile(t *testing.T) {
	t.Parallel()
	c, n := oneStopped(t, false)
	staleFile(t, c, n, "snapshot.db")
	c.start(n) // the log continues it
	if l := c.leader(); !has(l, "key3") || !has(l, "after the copy") {
		t.Error("the state is not what the log made it")
	}

	c, n = oneStopped(t, false)
	staleFile(t, c, n, "snapshot.db")
	changeLog(t, n, func(b logFile) error {
		m, _ := n.snapshots().Meta()
		return b.DeleteRange(1, m.Index+2)
	})
	refuses(t, n, "snapshot.db", "old copy", "what is between is lost", mendsAlone)
}

// A log that was emptied because a snapshot replaced it says nothing of the state:
// without that snapshot, the node would start from nothing.
func TestEmptiedLogNeedsItsSnapshot(t *testing.T) {
	t.Parallel()
	c, n := oneStopped(t, false)
	path := n.snapshots().Path()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c.start(n)
	put(t, c.leader(), "later still")
	if err := n.takeSnapshot(n.raft.Load()); err != nil {
		t.Fatal(err)
	}
	m, _ := n.snapshots().Meta()
	n.logs.marks.update(func(v *mark) { v.base = m.Index })
	if err := n.logs.DeleteRange(1, 1<<40); err != nil {
		t.Fatal(err)
	}
	n.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, path)
	refuses(t, n, path, "missing", "is lost", mendsAlone)
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, n, path, "old copy", "is lost", mendsAlone)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(n)
	if l := c.leader(); !has(l, "later still") {
		t.Error("the state of the snapshot is gone")
	}
}

// One value of the stable store goes back in time, the rest of the file does not.
func TestOldTermOrVoteIsRefused(t *testing.T) {
	t.Parallel()
	for key, tc := range map[string]struct {
		value []byte
		want  string
	}{
		"CurrentTerm":  {binary.BigEndian.AppendUint64(nil, 1), "its term is 1"},
		"LastVoteTerm": {binary.BigEndian.AppendUint64(nil, 1), "newest vote is of term 1"},
		"LastVoteCand": {[]byte("somebody else"), `went to "somebody else"`},
	} {
		t.Run(key, func(t *testing.T) {
			_, n := oneStopped(t, false)
			changeLog(t, n, func(b logFile) error {
				return b.Set([]byte(key), sealValue([]byte(key), tc.value))
			})
			refuses(t, n, n.logs.path, "old copy", tc.want, mendsAlone)
		})
	}
}

func changeLog(t *testing.T, n *testNode, change func(logFile) error) {
	t.Helper()
	b, err := openLogOf(n.cfg.DataDir, n.cfg.LogStore, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(change(b), b.Close()); err != nil {
		t.Fatal(err)
	}
}

// The raft id stands in all three files; a whole log can give it back, and files of
// two nodes are told.
func TestFilesOfTwoNodes(t *testing.T) {
	t.Parallel()
	_, a := oneStopped(t, false)
	_, b := oneStopped(t, false)
	for _, name := range []string{identityFile, logNames[a.cfg.LogStore], "snapshot.db"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(a.cfg.DataDir, name)
			own := treeOf(t, path)
			putTree(t, path, treeOf(t, filepath.Join(b.cfg.DataDir, name)))
			refuses(t, a, a.cfg.DataDir, identityFile, a.raftID, b.raftID, mendsAlone)
			putTree(t, path, own)
		})
	}
}

func TestLostIdentityIsWrittenAnew(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string){
		"missing":     func(path string) { remove(t, path) },
		"empty":       func(path string) { rewrite(t, path, func([]byte) []byte { return nil }) },
		"cut":         func(path string) { rewrite(t, path, func(b []byte) []byte { return b[:len(b)-3] }) },
		"bit flipped": func(path string) { rewrite(t, path, func(b []byte) []byte { b[20] ^= 1; return b }) },
	} {
		t.Run(name, func(t *testing.T) {
			c, n := oneStopped(t, false)
			want, path := n.raftID, filepath.Join(n.cfg.DataDir, identityFile)
			lose(path)
			c.start(n)
			if b, _ := os.ReadFile(path); n.raftID != want || string(b) != string(formatIdentity(want)) {
				t.Errorf("it is %s now, the file has %q; it was %s", n.raftID, b, want)
			}
		})
	}
}
