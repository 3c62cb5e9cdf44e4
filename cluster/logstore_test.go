package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// openTestLog opens a log store in dir, and fails the test if it cannot.
func openTestLog(t *testing.T, dir string, onFail func(error)) (*logStore, *stableStore) {
	t.Helper()
	return openTestLogOf(t, dir, StoreBolt, onFail)
}

func openTestLogOf(t *testing.T, dir, store string, onFail func(error)) (*logStore, *stableStore) {
	t.Helper()
	if noLog(dir, store) {
		if err := createLog(dir, store); err != nil {
			t.Fatal(err)
		}
	}
	file, err := openLogOf(dir, store, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	d := newDisk(machineClock{}, onFail)
	path := logPath(dir, store)
	return &logStore{file: file, path: path, step: deleteStep(store), disk: d, at: fsm.EntryTime}, &stableStore{file: file, path: path, disk: d}
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
					s.file = &brokenBolt{logFile: s.file, deletes: 1}
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
				s.file.Close()
				if again, err := openBolt(s.path); err != nil {
					t.Errorf("interrupted %v: %v", interrupted, err)
				} else {
					again.Close()
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
		floor  uint64
		want   uint64
	}{
		{"the whole log fits", 100, 500, 1 << 20, minTrailing, maxTrailing},
		{"some of it fits", 1000, 4000, 2000 * 1000, minTrailing, 2000},
		{"the floor", 1000, 4000, 10, minTrailing, minTrailing},
		{"a lower floor", 1000, 4000, 10, 64, 64},
		{"the cap", 1, 20000, 1 << 30, minTrailing, maxTrailing},
		{"an empty log", 0, 0, 1 << 30, minTrailing, maxTrailing},
	} {
		s := &logStore{at: func([]byte) (int64, bool) { return 0, false }}
		for i := uint64(1); i <= tc.n; i++ {
			s.stored([]*raft.Log{{Index: i, Data: make([]byte, tc.size)}})
		}
		first := min(tc.n, 1)
		if got := s.trailing(tc.budget, tc.floor, first, tc.n); got != tc.want {
			t.Errorf("%s: %d entries stay, want %d", tc.name, got, tc.want)
		}
	}
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	var told []error
	s, stable := openTestLog(t, t.TempDir(), func(err error) { told = append(told, err) })
	mustStore(t, s, entries(1, 2))
	real := s.file
	s.file = &brokenBolt{logFile: real, fail: errors.New("input/output error")}
	if err := s.StoreLogs(entries(3, 3)); err == nil {
		t.Fatal("a failed write was acknowledged")
	}
	s.file = real
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
