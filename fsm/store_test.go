package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

func openStore(t testing.TB, dir string) *snapshot.Store {
	t.Helper()
	s, err := snapshot.OpenStore(dir, snapshot.Options{MaxFileSize: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// persist takes a snapshot the way raft does and returns Persist's error.
func persist(t testing.TB, f *FSM, s *snapshot.Store, index uint64) error {
	t.Helper()
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	k, err := s.Create(1, index, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Persist(k); err != nil {
		k.Cancel()
		return err
	}
	return k.Close()
}

// gather takes out of the table what a snapshot has to write, in name order.
func gather(x *stateSnapshot) {
	if err := x.table.gather(&x.records, func() error { return nil }); err != nil {
		panic(err)
	}
	slices.SortFunc(x.records, func(a, b snapshot.Record) int { return bytes.Compare(a.Name, b.Name) })
}

func open(t testing.TB, s *snapshot.Store) io.ReadCloser {
	t.Helper()
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Fatal(len(list), err)
	}
	_, rc, err := s.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rc.Close() })
	return rc
}

func streamOf(t testing.TB, s *snapshot.Store) []byte {
	t.Helper()
	rc := open(t, s)
	defer rc.Close()
	b, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// After a restart nothing may have been applied yet, and raft asks for a snapshot all the same.
func TestSnapshotRightAfterRestart(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	f := New(s)
	apply(t, f, 1, 5, setCluster(1, 0), replace("k", "v", 100), replace("dies", "v", 6))
	if err := persist(t, f, s, 1); err != nil {
		t.Fatal(err)
	}
	before := streamOf(t, s)

	f = New(s)
	if err := f.Restore(open(t, s)); err != nil {
		t.Fatal(err)
	}
	if err := persist(t, f, s, 1); err != nil { // the same index again
		t.Fatal(err)
	}
	f.StoreConfiguration(2, raft.Configuration{})
	if err := persist(t, f, s, 2); err != nil {
		t.Fatal(err)
	}
	if after := streamOf(t, s); !bytes.Equal(before, after) {
		t.Errorf("equal states, other bytes:\n%x\n%x", before, after)
	}
	if err := persist(t, f, s, 1); !errors.Is(err, snapshot.ErrSuperseded) {
		t.Errorf("a snapshot below the file's: %v", err)
	}
}

func TestRestoreRefusesWhatIsOlderOrForeign(t *testing.T) {
	s := openStore(t, t.TempDir())
	f := New(s)
	apply(t, f, 1, 5, replace("k", "old", 100))
	if err := persist(t, f, s, 1); err != nil {
		t.Fatal(err)
	}
	if err := f.Restore(open(t, s)); err != nil { // equal to what is applied: there is nothing to load
		t.Error(err)
	}
	tab := f.Table()
	apply(t, f, 2, 5, replace("k", "new", 100))
	if err := f.Restore(open(t, s)); err == nil || get(f, 0, "k") != "new" || f.Table() != tab {
		t.Errorf("an older snapshot was loaded: %v", err)
	}
	if err := f.Restore(io.NopCloser(bytes.NewReader(streamOf(t, s)))); err == nil {
		t.Error("a stream that is no local snapshot was loaded")
	}
}

// A record that expired while the node was down is skipped when the file is loaded; the next snapshot takes it out of the file.
func TestRecordsThatExpiredInTheFileLeaveIt(t *testing.T) {
	s := openStore(t, t.TempDir())
	f := New(s)
	apply(t, f, 1, 5, replace("stays", "v", 100), replace("dies", "v", 50))
	if err := persist(t, f, s, 1); err != nil {
		t.Fatal(err)
	}
	apply(t, f, 2, 60)
	if err := persist(t, f, s, 2); err != nil {
		t.Fatal(err)
	}
	expired := func() (n int) {
		r, _ := snapshot.FromReader(open(t, s))
		if err := r.EachExpired(func(snapshot.Record) error { return nil }, func([]byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		r.Close()
		return n
	}
	if n := expired(); n != 1 {
		t.Fatalf("%d expired records in the file, the test wants 1", n)
	}
	f = New(s)
	if err := f.Restore(open(t, s)); err != nil {
		t.Fatal(err)
	}
	if err := persist(t, f, s, 2); err != nil {
		t.Fatal(err)
	}
	if n := expired(); n != 0 || get(f, 0, "stays") != "v" {
		t.Errorf("%d expired records are still in the file", n)
	}
}

// Nodes compare their streams' checksums, so every byte of the state must count.
func TestEveryByteOfTheStateIsInTheStream(t *testing.T) {
	sum := func(last uint64, at int64, effects ...Effect) uint64 {
		s := openStore(t, t.TempDir())
		defer s.Close()
		f := New(s)
		if r := f.Apply(logOf(last, Turn{0, 1, at, 1}, effects...)).(Result); r.Outcome != Applied {
			t.Fatal(r)
		}
		if err := persist(t, f, s, last); err != nil {
			t.Fatal(err)
		}
		return crc64.Checksum(streamOf(t, s), crc64.MakeTable(crc64.ECMA))
	}
	full := func() []Effect {
		return []Effect{
			setCluster(1, 1), {Op: OpSetOffset, State: le64(77)},
			{Op: OpReplace, NS: 1, Key: []byte("key"), Ident: []byte("id"), State: []byte("state"), Expiry: 1 << 40},
			{Op: OpReplace, NS: 1, Key: []byte("tat"), Ident: []byte{1}, State: le64(1 << 41), Expiry: 1 << 41},
		}
	}
	seen := map[uint64]string{}
	note := func(what string, sum uint64) {
		if other, ok := seen[sum]; ok {
			t.Errorf("%s and %s give one stream", what, other)
		}
		seen[sum] = what
	}
	base := sum(9, 5, full()...)
	note("the state", base)
	if sum(9, 5, full()...) != base {
		t.Error("one state gives two streams")
	}
	note("last", sum(10, 5, full()...))
	note("T", sum(9, 6, full()...))
	for i := range full() {
		parts := func(e *Effect) map[string][]byte {
			return map[string][]byte{"key": e.Key, "ident": e.Ident, "state": e.State}
		}
		for part, b := range parts(&full()[i]) {
			for j := range b {
				e := full()
				e[i].State = bytes.Clone(e[i].State)
				parts(&e[i])[part][j] ^= 2
				note(fmt.Sprintf("effect %d, %s byte %d", i, part, j), sum(9, 5, e...))
			}
		}
		if e := full(); e[i].Op == OpReplace {
			e[i].Expiry++
			note(fmt.Sprintf("effect %d, expiry", i), sum(9, 5, e...))
			e = full()
			e[i].NS++
			note(fmt.Sprintf("effect %d, namespace", i), sum(9, 5, e...))
		}
	}
}
