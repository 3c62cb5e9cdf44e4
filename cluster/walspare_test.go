package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"
)

// A segment's blocks are written before the first append to it: none is a hole, or only set aside.
func TestASegmentIsMadeOfZerosThatWereWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	w.size = 1 << 20
	next := uint64(1)
	fill := func(until func() bool) {
		t.Helper()
		for !until() {
			if next > 10_000 {
				t.Fatal("no new segment after", next, "entries")
			}
			mustStore(t, s, bigEntry(next, 1000))
			next++
		}
	}
	for n := range 4 { // the first one is made while the append waits, and the others before they are needed
		fill(func() bool { return len(segmentsOf(t, dir)) > n })
		path := segmentsOf(t, dir)[n]
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		hole, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_HOLE)
		f.Close()
		if err != nil || hole != 1<<20 {
			t.Errorf("segment %d has a hole at %d of %d (%v)", n, hole, 1<<20, err)
		}
		w.spare.all.Wait()
		if present(filepath.Join(dir, walName, walSpareName)) {
			t.Fatalf("there is a spare file when segment %d was just begun", n)
		}
		end := next + 600
		fill(func() bool { return next >= end })
		w.spare.all.Wait()
		if b, err := os.ReadFile(filepath.Join(dir, walName, walSpareName)); err != nil || len(b) != 1<<20 || written(b) != 0 {
			t.Fatalf("a spare file of %d bytes, written up to %d, when more than half of segment %d is written (%v)", len(b), written(b), n, err)
		}
	}
	if st, err := w.meta.Load(""); err != nil || len(st.Segments) != 4 {
		t.Error(len(st.Segments), "segments are named:", err)
	} else {
		for _, s := range st.Segments {
			if s.SizeLimit != 1<<20-1<<15 {
				t.Errorf("segment %d: SizeLimit %d", s.ID, s.SizeLimit)
			}
		}
	}
	w.Close()
	for _, path := range segmentsOf(t, dir) {
		if st, err := os.Stat(path); err != nil || st.Size() != 1<<20 {
			t.Errorf("%s has not the length that it was made with: %d (%v)", path, st.Size(), err)
		}
	}
	if present(filepath.Join(dir, walName, walSpareName)) {
		t.Error("the spare file is there after a clean stop")
	}
	s, w = smallWal(t, dir)
	if got := bounds(t, s); got != [2]uint64{1, next - 1} {
		t.Errorf("the log is %v, want 1 to %d", got, next-1)
	}
	w.Close()
}

// bigEntry is one entry with so many bytes.
func bigEntry(index uint64, size int) []*raft.Log {
	l := entries(index, index)
	l[0].Data = bytes.Repeat([]byte{1}, size)
	return l
}

// A segment without a spare file is a small one, and known as that by the next start.
func TestSegmentsWithoutASpareAreSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	obstacle := filepath.Join(dir, walName, walSpareName, "file")
	s, w := smallWal(t, dir)
	w.size = 4 * firstSegment
	mustStore(t, s, entries(1, 1)) // the log removes a spare file when it is opened
	for _, err := range []error{os.Mkdir(filepath.Dir(obstacle), 0o700), os.WriteFile(obstacle, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	next := uint64(2)
	for ; len(segmentsOf(t, dir)) < 3; next++ {
		mustStore(t, s, bigEntry(next, 50_000))
		w.spare.all.Wait()
	}
	for _, path := range segmentsOf(t, dir) {
		if st, err := os.Stat(path); err != nil || st.Size()/100_000 != firstSegment/100_000 { // it ends with the batch that reaches the limit
			t.Errorf("%s has %d bytes, want %d (%v)", path, st.Size(), firstSegment, err)
		}
	}

	// As it is: a crash, with a spare file of the next segment that is not whole.
	if err := os.RemoveAll(filepath.Dir(obstacle)); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := os.WriteFile(filepath.Join(copied, walName, walSpareName), []byte("not whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, w = openWalCopy(t, copied)
	if got := bounds(t, s); got != [2]uint64{1, next - 1} {
		t.Fatalf("the log is %v, want 1 to %d", got, next-1)
	}
	for range 4 * firstSegment / 50_000 {
		mustStore(t, s, bigEntry(next, 50_000))
		w.spare.all.Wait()
		next++
	}
	sizes := map[int64]int{}
	for _, path := range segmentsOf(t, copied) {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes[st.Size()/100_000]++
	}
	if sizes[4*firstSegment/100_000] != 1 {
		t.Errorf("segments by size: %v, want one that was a spare file", sizes)
	}
	w.Close()
}

func openWalCopy(t *testing.T, dir string) (*logStore, *walLog) {
	t.Helper()
	s, w := smallWal(t, dir)
	w.size = 4 * firstSegment
	return s, w
}

// On a full disk the next segment is made in the room of half a spare file.
func TestHalfASpareIsGivenUpForASegment(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 6<<20)
	s, w := smallWal(t, dir)
	w.size = 2 * firstSegment
	mustStore(t, s, bigEntry(1, 200_000)) // begins the spare file, which has room for all of it
	w.spare.all.Wait()
	if st, err := os.Stat(filepath.Join(dir, walName, walSpareName)); err != nil || st.Size() != 2*firstSegment {
		t.Fatal("no spare file:", err)
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	const left = firstSegment / 2 // for the file that names the segments
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fallocate(int(filler.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-left); err != nil {
		t.Fatal(err)
	}
	next := uint64(2)
	for ; len(segmentsOf(t, dir)) < 2; next++ {
		if next > 20 {
			t.Fatal("no second segment")
		}
		mustStore(t, s, bigEntry(next, 50_000))
		w.spare.mu.Lock()
		w.spare.goal = 0 // the spare file stays as it is
		w.spare.mu.Unlock()
	}
	if err := w.failure(); err != nil {
		t.Error(err)
	}
	if present(filepath.Join(dir, walName, walSpareName)) {
		t.Error("half a spare file is there")
	}
	if got := bounds(t, s); got != [2]uint64{1, next - 1} {
		t.Errorf("the log is %v, want 1 to %d", got, next-1)
	}
	w.Close()
}

// A segment that was made and not named before a crash has the name of the next one that
// is made. That one stays.
func TestASegmentOfACrashedStartDoesNotTakeTheNextOneAlong(t *testing.T) {
	t.Parallel()
	for _, entriesBefore := range []uint64{0, 3} {
		dir := t.TempDir()
		s, w := smallWal(t, dir)
		next := uint64(1)
		for ; next <= entriesBefore; next++ {
			mustStore(t, s, entries(next, next))
		}
		w.Close()
		path := filepath.Join(dir, walName, segment.FileName(types.SegmentInfo{BaseIndex: next, ID: uint64(len(segmentsOf(t, dir)))}))
		if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
		s, w = smallWal(t, dir)
		mustStore(t, s, entries(next, next))
		w.Close() // and what is removed is gone
		if !present(path) {
			t.Errorf("after %d entries: %s was made and is gone", entriesBefore, path)
		}
		s, w = smallWal(t, dir)
		wants(t, s, 1, next)
		w.Close()
	}
}
