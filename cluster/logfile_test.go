package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// A flipped bit in the file must be named before anything is served from it, or be
// harmless: never another entry.
func TestDamagedLogIsNamedOrHarmless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	func() {
		s, stable := openTestLog(t, dir, func(err error) { t.Error(err) })
		for i := uint64(1); i <= 60; i++ {
			mustStore(t, s, entries(i, i))
		}
		for _, k := range stableKeys {
			stable.Set([]byte(k), []byte("12345678"))
		}
		s.file.Close()
		if _, _, err := loadIdentity(dir, "n1"); err != nil {
			t.Fatal(err)
		}
	}()
	path := filepath.Join(dir, logName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	used := len(bytes.TrimRight(whole, "\x00"))
	whole = whole[:min((used/page+1)*page, len(whole))] // the file is long and mostly empty
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readAll(dir); err != nil {
		t.Fatal(err)
	}
	if whole, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	whole = whole[:min((used/page+4)*page, len(whole))]
	named := 0
	for at := 0; at < len(whole); at += 331 {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(dir); err != nil {
			named++
			if !strings.Contains(err.Error(), path) || !errors.As(err, &untrusted{}) {
				t.Fatalf("byte %d: the error must name the file and be one that says what mends it: %v", at, err)
			}
		}
	}
	if named == 0 {
		t.Error("no flipped bit was found")
	}
	for _, n := range []int{1, 100, 4096, len(whole) / 2, len(whole) - 1} {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(dir); err == nil {
			t.Errorf("cut to %d of %d bytes, the log was taken for whole", n, len(whole))
		}
	}
}

// A page that says it holds fewer entries than it does would end the log early,
// and the node would have forgotten what it acknowledged.
func TestLogThatLostItsTailIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := openTestLog(t, dir, func(err error) { t.Error(err) })
	for i := uint64(1); i <= 60; i++ {
		mustStore(t, s, entries(i, i))
	}
	s.file.Close()
	if _, _, err := loadIdentity(dir, "n1"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	whole = whole[:48*4096] // the rest is empty
	named := 0
	for page := 2; page < 48; page++ {
		for bit := range 7 {
			b := bytes.Clone(whole)
			b[page*4096+10] ^= 1 << bit // the low byte of its count
			if err := os.WriteFile(s.path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := readAll(dir); err != nil {
				named++
				if !errors.As(err, &untrusted{}) {
					t.Fatalf("page %d, bit %d: %v", page, bit, err)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no page in use was hit")
	}
}

// readAll opens the log of a directory as a node does, and compares what it finds
// with what was written.
func readAll(dir string) error {
	path := filepath.Join(dir, logName)
	bolt, err := openBolt(path)
	if err != nil {
		return err
	}
	defer bolt.Close()
	d := newDisk(machineClock{}, func(error) {})
	s := &logStore{file: bolt, path: path, disk: d, at: fsm.EntryTime}
	if err := errors.Join(s.scan(), (&stableStore{file: bolt, path: path, disk: d}).check()); err != nil {
		return err
	}
	for _, want := range entries(1, 60) {
		var got raft.Log
		if err := s.read(want.Index, &got); err != nil || got.Term != want.Term || !bytes.Equal(got.Data, want.Data) {
			return fmt.Errorf("entry %d was accepted as %+v (%v)", want.Index, got, err)
		}
	}
	return nil
}

func TestRowsOfVersion2(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "rows_v2.golden"))
	if err != nil {
		t.Fatal(err)
	}
	e := raft.Log{Index: 258, Term: 7, Type: raft.LogCommand, Data: []byte("an entry")}
	tally := logTally{last: 258, txid: 9}
	tally.add(appendRow(nil, &e))
	got := fmt.Sprintf("entry 258 term 7 %q: %x\nCurrentTerm 7: %x\nTally: %x\n",
		e.Data, appendRow(nil, &e), sealValue([]byte("CurrentTerm"), []byte{0, 0, 0, 0, 0, 0, 0, 7}), sealValue(tallyKey, tally.encode()))
	if got != string(golden) {
		t.Errorf("the rows are\n%s, version 2 is\n%s", got, golden)
	}
	var back raft.Log
	if err := decodeRow(258, appendRow(nil, &e), &back); err != nil || fmt.Sprint(back) != fmt.Sprint(e) {
		t.Errorf("%+v was read as %+v (%v)", e, back, err)
	}
	if err := decodeRow(257, appendRow(nil, &e), &back); err == nil {
		t.Error("the row of another index was taken for this one's")
	}
}

func TestHoleInTheLogIsNamed(t *testing.T) {
	t.Parallel()
	s, _ := openTestLog(t, t.TempDir(), func(error) {})
	mustStore(t, s, entries(1, 3))
	mustStore(t, s, entries(5, 6))
	if err := s.scan(); err == nil || !strings.Contains(err.Error(), "entry 4 is missing") {
		t.Errorf("a log without entry 4: %v", err)
	}
}
