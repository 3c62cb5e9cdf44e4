package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// openTestLog opens a log store in dir, and fails the test if it cannot.
func openTestLog(t *testing.T, dir string, onFail func(error)) (*logStore, *stableStore) {
	t.Helper()
	bolt, path, err := openBolt(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bolt.Close() })
	d := newDisk(machineClock{}, onFail)
	return &logStore{bolt: bolt, path: path, disk: d, at: fsm.EntryTime}, &stableStore{bolt: bolt, path: path, disk: d}
}

func entries(from, to uint64) (logs []*raft.Log) {
	for i := from; i <= to; i++ {
		logs = append(logs, &raft.Log{Index: i, Term: 1 + i/100, Type: raft.LogCommand, Data: fmt.Append(nil, "data of ", i)})
	}
	return logs
}

func mustStore(t *testing.T, s *logStore, logs []*raft.Log) {
	t.Helper()
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
}

func bounds(t *testing.T, s *logStore) [2]uint64 {
	t.Helper()
	first, err1 := s.FirstIndex()
	last, err2 := s.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return [2]uint64{first, last}
}

func TestEntryComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s, _ := openTestLog(t, t.TempDir(), func(err error) { t.Error(err) })
	want := entries(1, 3)
	want[1].Type, want[1].Data = raft.LogNoop, nil
	mustStore(t, s, want)
	for _, w := range want {
		var got raft.Log
		if err := s.GetLog(w.Index, &got); err != nil {
			t.Fatal(err)
		}
		if got.Index != w.Index || got.Term != w.Term || got.Type != w.Type || !bytes.Equal(got.Data, w.Data) || got.Extensions != nil {
			t.Errorf("stored %+v, got %+v", w, got)
		}
		if w.Extensions != nil {
			t.Error("the checksum leaked into raft's own entry")
		}
	}
	if err := s.GetLog(4, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// A truncation that is cut short must leave a log without holes: raft and the
// check at the start count on it.
func TestTruncationInStepsLeavesNoHole(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		lo, hi     uint64
		want       [2]uint64
		firstSteps [2]uint64 // bounds after the first step alone
	}{
		{"prefix", 1, 2500, [2]uint64{2501, 5000}, [2]uint64{1025, 5000}},
		{"suffix", 2501, 5000, [2]uint64{1, 2500}, [2]uint64{1, 3976}},
		{"all", 1, 5000, [2]uint64{0, 0}, [2]uint64{1, 3976}},
		{"beyond both ends", 0, 9999, [2]uint64{0, 0}, [2]uint64{1, 3976}},
		{"one", 5000, 5000, [2]uint64{1, 4999}, [2]uint64{1, 4999}},
		{"nothing", 6000, 7000, [2]uint64{1, 5000}, [2]uint64{1, 5000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, interrupted := range []bool{true, false} {
				s, _ := openTestLog(t, t.TempDir(), func(error) {})
				for i := uint64(1); i < 5000; i += 1000 {
					mustStore(t, s, entries(i, i+999))
				}
				if interrupted {
					s.bolt = &brokenBolt{boltFile: s.bolt, deletes: 1}
				}
				err := s.DeleteRange(tc.lo, tc.hi)
				s.disk.err.Store(nil)
				want := tc.want
				if interrupted {
					want = tc.firstSteps
				} else if err != nil {
					t.Fatal(err)
				}
				if got := bounds(t, s); got != want {
					t.Errorf("interrupted %v: the log goes from %d to %d, want %d to %d", interrupted, got[0], got[1], want[0], want[1])
				}
				if err := s.scan(); err != nil {
					t.Errorf("interrupted %v: %v", interrupted, err)
				}
			}
		})
	}
}

func TestNewestCommandIsNeverUnderstated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := openTestLog(t, dir, func(err error) { t.Error(err) })
	logs := entries(1, 10)
	logs[8].Type, logs[9].Type = raft.LogNoop, raft.LogBarrier
	mustStore(t, s, logs)
	if got := s.command.Load(); got != 8 {
		t.Errorf("the newest command is %d, want 8", got)
	}
	if err := s.DeleteRange(7, 10); err != nil {
		t.Fatal(err)
	}
	if got := s.command.Load(); got != 6 {
		t.Errorf("after 7 to 10 were deleted it is %d, want 6", got)
	}
	s.command.Store(0)
	if err := s.scan(); err != nil || s.command.Load() != 6 {
		t.Errorf("read again it is %d (%v), want 6", s.command.Load(), err)
	}
}

func TestTrailingStaysWithinItsBytes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		size   int
		n      uint64
		budget int64
		want   uint64
	}{
		{"the whole log fits", 100, 500, 1 << 20, maxTrailing},
		{"some of it fits", 1000, 4000, 2000 * 1000, 2000},
		{"the floor", 1000, 4000, 10, minTrailing},
		{"the cap", 1, 20000, 1 << 30, maxTrailing},
		{"an empty log", 0, 0, 1 << 30, maxTrailing},
	} {
		s := &logStore{at: func([]byte) (int64, bool) { return 0, false }}
		for i := uint64(1); i <= tc.n; i++ {
			s.stored([]*raft.Log{{Index: i, Data: make([]byte, tc.size)}})
		}
		first := min(tc.n, 1)
		if got := s.trailing(tc.budget, first, tc.n); got != tc.want {
			t.Errorf("%s: %d entries stay, want %d", tc.name, got, tc.want)
		}
	}
}

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
		s.bolt.Close()
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
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "join again") {
				t.Fatalf("byte %d: the error must name the file and the mending: %v", at, err)
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
	s.bolt.Close()
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
				if !strings.Contains(err.Error(), "join again") {
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
	bolt, path, err := openBolt(dir)
	if err != nil {
		return err
	}
	defer bolt.Close()
	d := newDisk(machineClock{}, func(error) {})
	s := &logStore{bolt: bolt, path: path, disk: d, at: fsm.EntryTime}
	if err := errors.Join(s.scan(), (&stableStore{bolt: bolt, path: path, disk: d}).check()); err != nil {
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

func TestRowsOfVersion1(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "rows_v1.golden"))
	if err != nil {
		t.Fatal(err)
	}
	e := raft.Log{Index: 258, Term: 7, Type: raft.LogCommand, Data: []byte("an entry")}
	got := fmt.Sprintf("entry 258 term 7 %q: %x\nCurrentTerm 7: %x\n",
		e.Data, appendEntrySum(nil, &e), sealValue([]byte("CurrentTerm"), []byte{0, 0, 0, 0, 0, 0, 0, 7}))
	if got != string(golden) {
		t.Errorf("the rows are\n%s, version 1 is\n%s", got, golden)
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

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	var told []error
	s, stable := openTestLog(t, t.TempDir(), func(err error) { told = append(told, err) })
	mustStore(t, s, entries(1, 2))
	real := s.bolt
	s.bolt = &brokenBolt{boltFile: real, fail: errors.New("input/output error")}
	if err := s.StoreLogs(entries(3, 3)); err == nil {
		t.Fatal("a failed write was acknowledged")
	}
	s.bolt = real
	if err := s.StoreLogs(entries(3, 3)); err == nil {
		t.Error("the store was used again after a failed write")
	}
	if err := s.DeleteRange(1, 1); err == nil {
		t.Error("the log was truncated after a failed write")
	}
	for name, f := range map[string]func(){
		"set a term":    func() { stable.SetUint64([]byte("CurrentTerm"), 9) },
		"read a term":   func() { stable.GetUint64([]byte("CurrentTerm")) },
		"read an entry": func() { s.GetLog(1, &raft.Log{}) },
	} {
		if !endsGoroutine(f) {
			t.Errorf("%s: raft would panic or go on", name)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "input/output error") {
		t.Errorf("the node was told %v, want the first failure once", told)
	}
	if v, err := real.Get([]byte("CurrentTerm")); err == nil {
		t.Errorf("a term was written after the failure: %x", v)
	}
}

// endsGoroutine says whether f ends the goroutine that it runs on.
func endsGoroutine(f func()) bool {
	returned := false
	var wg sync.WaitGroup
	wg.Go(func() {
		f()
		returned = true
	})
	wg.Wait()
	return !returned
}

func TestStableValueThatCannotBeTrusted(t *testing.T) {
	t.Parallel()
	key := []byte("CurrentTerm")
	_, stable := openTestLog(t, t.TempDir(), func(error) {})
	if _, err := stable.GetUint64(key); err == nil || err.Error() != "not found" {
		t.Errorf("raft knows a missing value by the text \"not found\", this is %v", err)
	}
	stable.SetUint64(key, 7)
	if v, err := stable.GetUint64(key); err != nil || v != 7 {
		t.Errorf("7 came back as %d, %v", v, err)
	}
	sealed := sealValue(key, []byte("value"))
	for i := range sealed {
		for bit := range 8 {
			b := bytes.Clone(sealed)
			b[i] ^= 1 << bit
			if v, err := openValue(key, b); err == nil {
				t.Errorf("bit %d of byte %d flipped: taken for %q", bit, i, v)
			}
		}
		if _, err := openValue(key, sealed[:i]); err == nil {
			t.Errorf("cut to %d bytes: taken for whole", i)
		}
	}
	if _, err := openValue([]byte("LastVoteTerm"), sealed); err == nil {
		t.Error("the value of one key was taken for another's")
	}
}

// brokenBolt is a bolt file that fails as told.
type brokenBolt struct {
	boltFile
	deletes int // how many truncations succeed; 0: all

	mu   sync.Mutex
	fail error         // of every write
	hold chan struct{} // writes wait until it is closed
}

func (b *brokenBolt) failWrites(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// holdWrites makes writes wait until release is called.
func (b *brokenBolt) holdWrites() (release func()) {
	hold := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold = hold
	return sync.OnceFunc(func() {
		b.mu.Lock()
		b.hold = nil
		b.mu.Unlock()
		close(hold)
	})
}

func (b *brokenBolt) write() error {
	b.mu.Lock()
	hold, err := b.hold, b.fail
	b.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return err
}

func (b *brokenBolt) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

func (b *brokenBolt) StoreLogs(logs []*raft.Log) error {
	if err := b.write(); err != nil {
		return err
	}
	return b.boltFile.StoreLogs(logs)
}

func (b *brokenBolt) Set(k, v []byte) error {
	if err := b.write(); err != nil {
		return err
	}
	return b.boltFile.Set(k, v)
}

func (b *brokenBolt) DeleteRange(lo, hi uint64) error {
	if b.deletes == 1 {
		b.deletes = -1
	} else if b.deletes < 0 {
		return errors.New("interrupted")
	}
	return b.boltFile.DeleteRange(lo, hi)
}
