package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
)

// smallWal is a log in small segments.
func smallWal(t *testing.T, dir string) (*logStore, *walLog) {
	t.Helper()
	s, _ := openTestLogOf(t, dir, StoreWal, func(err error) { t.Error(err) })
	w := s.file.(*walLog)
	w.size = 4096
	return s, w
}

// wants compares the log with entries from to to, and nothing else.
func wants(t *testing.T, s *logStore, from, to uint64) {
	t.Helper()
	if got := bounds(t, s); got != [2]uint64{from, to} {
		t.Fatalf("the log is %v, want %d to %d", got, from, to)
	}
	for _, want := range entries(from, to) {
		var got raft.Log
		if err := s.read(want.Index, &got); err != nil || got.Term != want.Term || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("entry %d is %+v (%v)", want.Index, got, err)
		}
	}
	for _, i := range []uint64{from - 1, to + 1} {
		var l raft.Log
		if err := s.read(i, &l); !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("entry %d, which is not there: %v", i, err)
		}
	}
}

func TestWalGoesOnAfterEveryEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	next := uint64(1)
	for range 20 { // in some of them a segment is full at the end, and the process does not say so any more
		s, w := smallWal(t, dir)
		for range 37 {
			mustStore(t, s, entries(next, next))
			next++
		}
		wants(t, s, 1, next-1)
		w.Close()
		s, w = smallWal(t, dir)
		wants(t, s, 1, next-1)
		w.Close()
	}
}

func TestWalDeletesAtBothEndsAndAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	reopen := func(first, last uint64) {
		t.Helper()
		check := wants
		if last == 0 {
			check = func(t *testing.T, s *logStore, _, _ uint64) {
				if got := bounds(t, s); got != [2]uint64{} {
					t.Errorf("the log is %v, want none", got)
				}
			}
		}
		check(t, s, first, last)
		w.Close()
		s, w = smallWal(t, dir)
		check(t, s, first, last)
		if err := s.scan(); err != nil {
			t.Error(err)
		}
	}
	cut := func(lo, hi uint64) {
		t.Helper()
		if err := s.DeleteRange(lo, hi); err != nil {
			t.Fatal(err)
		}
	}
	for i := uint64(1); i <= 900; i += 3 {
		mustStore(t, s, entries(i, i+2))
	}
	cut(1, 250)
	reopen(251, 900)
	cut(880, 900)
	reopen(251, 879)
	cut(300, 879)
	reopen(251, 299)
	mustStore(t, s, entries(300, 310))
	reopen(251, 310)
	cut(251, 310)
	reopen(0, 0)
	mustStore(t, s, entries(5000, 5010)) // behind a snapshot
	reopen(5000, 5010)
	cut(5000, 5005)
	mustStore(t, s, entries(5011, 5200))
	reopen(5006, 5200)
	mustStore(t, s, entries(5201, 5205))
	cut(5006, 5203) // in the newest segment
	reopen(5204, 5205)
}

// Reading a log, and refusing it, changes nothing.
func TestWalIsUntouchedUntilTheFirstWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	mustStore(t, s, entries(1, 100))
	w.Close()
	before := dirContents(t, dir)
	s, w = smallWal(t, dir)
	wants(t, s, 1, 100)
	w.Close()
	if !maps.Equal(before, dirContents(t, dir)) {
		t.Error("files have changed")
	}
}

// What reads while segments are sealed and deleted gets the entry, or that there is none.
func TestWalIsReadWhileItIsCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := smallWal(t, dir)
	mustStore(t, s, entries(1, 1))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				first, _ := s.FirstIndex()
				last, _ := s.LastIndex()
				for i := first; i <= last; i += 1 + (last-first)/20 {
					var l raft.Log
					err := s.file.GetLog(i, &l)
					if err == nil && string(l.Data) != fmt.Sprint("data of ", i) || err != nil && !errors.Is(err, raft.ErrLogNotFound) {
						t.Errorf("entry %d is %+v (%v)", i, l, err)
						return
					}
				}
			}
		})
	}
	next := uint64(2)
	for range 60 {
		for range 10 {
			mustStore(t, s, entries(next, next+3))
			next += 4
		}
		if err := s.DeleteRange(1, next-20); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
	if got := bounds(t, s); got != [2]uint64{next - 19, next - 1} {
		t.Errorf("the log is %v at the end, before %d", got, next)
	}
}

// A segment that is full is sealed by its last batch, and named so a moment later. A
// process that ends in between leaves one that raft-wal would not write to any more.
func TestSegmentThatWasSealedAndNotNamedSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	mustStore(t, s, entries(1, 5))
	w.Close()
	path := segmentsOf(t, dir)[0]
	r, err := openWal(filepath.Join(dir, walName), true)
	if err != nil {
		t.Fatal(err)
	}
	tail := r.segments[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[tail.end:], tail.appendSeal(nil))
	if err := errors.Join(r.Close(), os.WriteFile(path, b, 0o600), readWal(dir, 5)); err != nil {
		t.Fatal(err)
	}
	s, w = smallWal(t, dir)
	mustStore(t, s, entries(6, 9))
	w.Close()
	if err := readWal(dir, 9); err != nil {
		t.Error(err)
	}
}

func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, walName, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// readWal opens a log as a node does and compares it with entries 1 to last.
func readWal(dir string, last uint64) error {
	w, err := openWal(filepath.Join(dir, walName), true)
	if err != nil {
		return err
	}
	defer w.Close()
	s := &logStore{file: w, path: w.dir, disk: newDisk(machineClock{}, func(error) {}), at: func([]byte) (int64, bool) { return 0, false }}
	if err := errors.Join(s.scan(), (&stableStore{file: w, path: w.dir}).check()); err != nil {
		return err
	}
	if _, end := w.bounds(); end != last {
		return fmt.Errorf("TAKEN FOR WHOLE: it ends at %d instead of %d", end, last)
	}
	for _, want := range entries(1, last) {
		var got raft.Log
		if err := s.read(want.Index, &got); err != nil || got.Term != want.Term || !bytes.Equal(got.Data, want.Data) {
			return fmt.Errorf("TAKEN FOR WHOLE: entry %d is %+v (%v)", want.Index, got, err)
		}
	}
	return nil
}

// A flipped bit, wherever it is, must be named before anything is served, or be
// harmless; also in what was written last, with nothing behind it.
func TestDamagedWalIsNamedOrHarmless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	const last = 150
	for i := uint64(1); i <= last; i++ {
		mustStore(t, s, entries(i, i))
	}
	w.Close()
	if err := readWal(dir, last); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(segmentsOf(t, dir), filepath.Join(dir, walName, walMetaName)) {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		used, step, named := len(bytes.TrimRight(whole, "\x00")), 1, 0
		if strings.HasSuffix(path, walMetaName) {
			step = 97
		}
		damage := func(what string, b []byte) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			err := readWal(dir, last)
			if err == nil {
				return
			}
			named++
			if strings.Contains(err.Error(), "TAKEN") || !errors.As(err, &untrusted{}) || !strings.Contains(err.Error(), walName) {
				t.Errorf("%s, %s: %v", filepath.Base(path), what, err)
			}
		}
		for at := 0; at < used; at += step {
			b := bytes.Clone(whole)
			if b[at] ^= 1 << (at % 8); whole[at] != 0 {
				damage(fmt.Sprint("byte ", at), b)
			}
		}
		if named == 0 {
			t.Error("no flipped bit was found in", path)
		}
		for _, n := range []int{0, 1, 100, used / 2, used - 1, len(whole) - 1} {
			if n < len(whole) && n >= 0 {
				named = 0
				if damage(fmt.Sprint("cut to ", n), whole[:n]); named == 0 && n < used {
					t.Errorf("%s, cut to %d of %d bytes, was taken for whole", path, n, len(whole))
				}
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := readWal(dir, last); !errors.As(err, &untrusted{}) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("without %s: %v", path, err)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := readWal(dir, last); err != nil {
		t.Error("whole again:", err)
	}
}

// What a power cut leaves of a batch that was never acknowledged is no damage: any of
// its sectors may be missing.
func TestInterruptedWriteIsNoDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	w.size = 1 << 16
	mustStore(t, s, entries(1, 5))
	path := segmentsOf(t, dir)[0]
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	batch := entries(6, 9)
	for _, l := range batch {
		l.Data = bytes.Repeat([]byte("0123456789abcde"), 70)
	}
	mustStore(t, s, batch)
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	var sectors []int
	for at := 0; at < len(after); at += sector {
		if !bytes.Equal(before[at:at+sector], after[at:at+sector]) {
			sectors = append(sectors, at)
		}
	}
	if len(sectors) < 5 {
		t.Fatal("the batch is too small:", sectors)
	}
	saveMeta(t, dir)
	for lost := 1; lost < 1<<len(sectors); lost++ {
		b := bytes.Clone(after)
		for i, at := range sectors {
			if lost>>i&1 == 1 {
				copy(b[at:at+sector], before[at:])
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readWal(dir, 5); err != nil {
			t.Fatalf("without the sectors %b of %v: %v", lost, sectors, err)
		}
		if lost%100 == 1 { // and it goes on
			s, w := smallWal(t, dir)
			mustStore(t, s, entries(6, 8))
			w.Close()
			if err := readWal(dir, 8); err != nil {
				t.Fatal(err)
			}
			rest := segmentsOf(t, dir)
			for _, name := range rest[1:] {
				os.Remove(name)
			}
			restoreMeta(t, dir)
		}
	}
}

// A page that was lost, with less than two whole batches behind it, took entries of
// several batches with it: all but the last one had been acknowledged.
func TestLostPageIsNotAnInterruptedWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	w.size = 1 << 16
	for i := uint64(1); i <= 40; i++ {
		mustStore(t, s, entries(i, i))
	}
	path := segmentsOf(t, dir)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	end := int(written(whole))
	const left = 40 // the last batch
	for lost := 40; lost < end-left-sector; lost += 8 {
		b := bytes.Clone(whole)
		clear(b[lost : end-left])
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		batches := (end - left - lost) / 40
		if err := readWal(dir, 40); err == nil || batches > maxStored && !errors.As(err, &untrusted{}) {
			t.Errorf("without the bytes %d to %d of %d: %v", lost, end-left, end, err)
		}
	}
}

func saveMeta(t *testing.T, dir string) { copyMeta(t, dir, walMetaName, "saved") }

func restoreMeta(t *testing.T, dir string) { copyMeta(t, dir, "saved", walMetaName) }

func copyMeta(t *testing.T, dir, from, to string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, walName, from))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, walName, to), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever the bytes of a segment are, it is read or named, and nothing panics.
func FuzzSegment(f *testing.F) {
	info := types.SegmentInfo{ID: 1, BaseIndex: 5, MinIndex: 5, Codec: walCodecID, SizeLimit: 1 << 10}
	whole := appendSegmentHeader(nil, info)
	s := walSegment{SegmentInfo: info}
	for i := uint64(5); i < 8; i++ {
		from := len(whole)
		if i == 5 {
			from = 0
		}
		row := appendRow(nil, &raft.Log{Index: i, Term: 1, Data: []byte("data")})
		s.offsets = append(s.offsets, uint32(len(whole)))
		whole = binary.LittleEndian.AppendUint32(append(whole, frameEntry, 0, 0, 0), uint32(len(row)))
		whole = append(append(whole, row...), make([]byte, padded(int64(len(row)))-int64(len(row)))...)
		whole = binary.LittleEndian.AppendUint32(append(whole, frameCommit, 0, 0, 0), crc32.Checksum(whole[from:], castagnoli))
	}
	full := func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, 1<<10-len(b))...) }
	f.Add(full(whole), false)
	f.Add(full(s.appendSeal(bytes.Clone(whole))), true)
	f.Add(full(whole[:len(whole)-9]), false)
	f.Add(full(nil), false)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		s := walSegment{SegmentInfo: info}
		if sealed {
			s.SealTime, s.MaxIndex, s.IndexStart = time.Unix(1, 0), 7, uint64(len(whole)+walFrame)
		}
		if err := s.check(b); err != nil {
			return
		}
		if sealed && len(s.offsets) < 3 {
			t.Errorf("a segment of %d entries passes for one of 3", len(s.offsets))
		}
		for i, at := range s.offsets {
			if end := int64(at) + walFrame; end > int64(len(b)) || end+int64(binary.LittleEndian.Uint32(b[at+4:])) > s.end {
				t.Errorf("entry %d is at %d, the last batch ends at %d", i, at, s.end)
			}
		}
	})
}
