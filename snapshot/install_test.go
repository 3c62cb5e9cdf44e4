package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// donor gives the stream of a snapshot at (index, term 1) with those records.
func donor(t testing.TB, index uint64, records ...Record) (*raft.SnapshotMeta, []byte) {
	t.Helper()
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, index, 100, records...)
	return stream(t, s)
}

func noLeftovers(t testing.TB, s *Store) {
	t.Helper()
	for _, name := range []string{newName, nextName, runsName} {
		if _, err := os.Stat(filepath.Join(s.dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Fatal("left behind:", name, err)
		}
	}
	if s.installing != nil {
		t.Fatal("still installing")
	}
}

func inode(t testing.TB, s *Store) uint64 {
	t.Helper()
	st, err := os.Stat(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Ino
}

func TestInstallOlderThanTheFile(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 9, 100, rec("a", "9", 200))
	m, b := donor(t, 8, rec("a", "8", 200))
	if err := send(t, s, m, b); !errors.Is(err, ErrStale) {
		t.Fatal(err)
	}
	noLeftovers(t, s)
	expect(t, contents(t, s), rec("a", "9", 200))
}

func TestInstallOlderThanWhatIsApplied(t *testing.T) {
	applied := uint64(10)
	s := openTest(t, t.TempDir(), Options{Applied: func() uint64 { return applied }})
	commit(t, s, 5, 100, rec("a", "5", 200))
	m, b := donor(t, 9, rec("a", "9", 200))
	if err := send(t, s, m, b); !errors.Is(err, ErrStale) {
		t.Fatal(err)
	}
	expect(t, contents(t, s), rec("a", "5", 200))
	applied = 9 // as new as the stream, the file is older: taken
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	noLeftovers(t, s)
	expect(t, contents(t, s), rec("a", "9", 200))
}

// What was new when the first byte came may be old when the last one did.
func TestInstallOvertakenWhileItCame(t *testing.T) {
	applied := uint64(0)
	s := openTest(t, t.TempDir(), Options{Applied: func() uint64 { return applied }})
	m, b := donor(t, 9, rec("a", "9", 200))
	k := create(t, s, m.Index)
	if _, err := k.Write(b); err != nil {
		t.Fatal(err)
	}
	applied = 10
	if err := k.Close(); !errors.Is(err, ErrStale) {
		t.Fatal(err)
	}
	noLeftovers(t, s)
	applied = 0
	k = create(t, s, m.Index)
	if _, err := k.Write(b); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 12, 100, rec("a", "12", 200))
	if err := k.Close(); !errors.Is(err, ErrStale) {
		t.Fatal(err)
	}
	noLeftovers(t, s)
	expect(t, contents(t, s), rec("a", "12", 200))
}

func TestInstallEqualToTheFileIsNotRenamed(t *testing.T) {
	hooks := 0
	s := openTest(t, t.TempDir(), Options{OnInstall: func(uint64, uint64) error { hooks++; return nil }})
	commit(t, s, 9, 100, rec("a", "9", 200))
	m, b := stream(t, s)
	was := inode(t, s)
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	if inode(t, s) != was {
		t.Fatal("renamed")
	}
	noLeftovers(t, s)
	m.Term = 7
	if err := send(t, s, m, b); !errors.Is(err, ErrStale) {
		t.Fatal("another term at one index:", err)
	}
	if hooks != 0 {
		t.Fatal("OnInstall for a file that stayed")
	}
}

func TestInstallWaitsUntilALocalSnapshotIsReleased(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	m, b := donor(t, 9, rec("a", "9", 200))
	k := create(t, s, 5)
	if err := k.Commit(Header{Last: 5, T: 100}, []Record{rec("a", "5", 200)}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	in := create(t, s, m.Index)
	if _, err := in.Write(b); err != nil {
		t.Fatal(err)
	}
	synced := make(chan struct{})
	s.disk.sync = func(path string, f syncer) error {
		defer func() { synced <- struct{}{} }()
		return f.Sync()
	}
	go func() { done <- in.Close() }()
	<-synced // the second sync comes after the turn
	select {
	case <-synced:
		t.Fatal("the install did not wait")
	case err := <-done:
		t.Fatal("the install did not wait:", err)
	case <-time.After(50 * time.Millisecond):
	}
	k.Release()
	<-synced
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	expect(t, contents(t, s), rec("a", "9", 200))
}

func TestInstallSyncsBeforeItRenames(t *testing.T) {
	var calls []string
	d := disk{
		sync: func(path string, f syncer) error {
			calls = append(calls, "sync "+filepath.Base(path))
			return f.Sync()
		},
		rename: func(from, to string) error {
			calls = append(calls, "rename "+filepath.Base(from)+" "+filepath.Base(to))
			return os.Rename(from, to)
		},
		syncDir: func(dir string) error {
			calls = append(calls, "sync directory")
			return syncDir(dir)
		},
	}
	s, err := openStore(t.TempDir(), Options{MaxFileSize: testMmap}, d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := []string{"sync snapshot.new", "rename snapshot.new snapshot.db", "sync directory"}
	if !slices.Equal(calls, want) {
		t.Fatalf("a new file: %q", calls)
	}
	calls = nil
	s.SetOptions(Options{OnInstall: func(index, term uint64) error {
		calls = append(calls, "hook")
		if m, _ := s.Meta(); m.Index != index || m.Term != term {
			t.Errorf("in the hook the file has %+v", m)
		}
		return nil
	}})
	m, b := donor(t, 9, rec("a", "9", 200))
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	want = append([]string{"sync snapshot.new"}, append(want, "hook")...)
	if !slices.Equal(calls, want) {
		t.Fatalf("an install: %q", calls)
	}
}

func TestADiskThatFailsDuringAnInstall(t *testing.T) {
	eio := syscall.EIO
	m, b := donor(t, 9, rec("a", "9", 200))
	for what, spoil := range map[string]func(*disk){
		"sync":           func(d *disk) { d.sync = func(string, syncer) error { return eio } },
		"rename":         func(d *disk) { d.rename = func(string, string) error { return eio } },
		"directory sync": func(d *disk) { d.syncDir = func(string) error { return eio } },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, dir, Options{})
			commit(t, s, 5, 100, rec("a", "5", 200))
			spoil(&s.disk)
			if err := send(t, s, m, b); !errors.Is(err, eio) {
				t.Fatal(err)
			}
			noLeftovers(t, s)
			s.disk = realDisk
			if what == "directory sync" {
				// Renamed, but nobody knows whether the disk has it: what is served is the new file, and nothing is acknowledged.
				expect(t, contents(t, s), rec("a", "9", 200))
				if err := s.SaveReceipt(Receipt{}); !errors.Is(err, eio) {
					t.Fatal("a write after that:", err)
				}
				if _, err := s.Create(1, 20, 1, testConf, 1, nil); !errors.Is(err, eio) {
					t.Fatal("a snapshot after that:", err)
				}
			} else {
				expect(t, contents(t, s), rec("a", "5", 200))
				if err := send(t, s, m, b); err != nil {
					t.Fatal("again, on a disk that works:", err)
				}
			}
			s.Close()
			expect(t, contents(t, openTest(t, dir, Options{})), rec("a", "9", 200))
		})
	}
}

func TestAnInstallThatIsCutOffOrDamagedLeavesTheFile(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 5, 100, rec("a", "5", 200))
	m, b := donor(t, 9, rec("a", "9", 200), rec("b", "9", 200))
	flipped := slices.Clone(b)
	flipped[len(b)/2] ^= 1
	for what, b := range map[string][]byte{"cut off": b[:len(b)-1], "empty": nil, "flipped": flipped, "longer": append(slices.Clone(b), 0)} {
		if err := send(t, s, m, b); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		noLeftovers(t, s)
	}
	k := create(t, s, m.Index)
	if _, err := k.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := k.Cancel(); err != nil {
		t.Fatal(err)
	}
	noLeftovers(t, s)
	if _, err := k.Write(b); err == nil {
		t.Error("Write after Cancel")
	}
	expect(t, contents(t, s), rec("a", "5", 200))
}

func TestAStreamOfALaterStateThanItsIndexIsRefused(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	m, b := donor(t, 9, rec("a", "9", 200))
	m.Index = 8
	if err := send(t, s, m, b); err == nil || !strings.Contains(err.Error(), "index 9") {
		t.Fatal(err)
	}
}

func TestOneInstallAtATimeAndCloseEndsIt(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	m, b := donor(t, 9, rec("a", "9", 200))
	k := create(t, s, m.Index)
	if _, err := k.Write(b[:20]); err != nil {
		t.Fatal(err)
	}
	if err := send(t, s, m, b); err == nil {
		t.Fatal("two installs at once")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(b[20:]); err == nil {
		t.Fatal("Write after the store was closed")
	}
	if err := errors.Join(k.Cancel(), k.Close()); err != nil && !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	noLeftovers(t, openTest(t, dir, Options{}))
}

func TestAFailingHookIsTheInstallsError(t *testing.T) {
	mine := errors.New("the log does not continue")
	s := openTest(t, t.TempDir(), Options{OnInstall: func(uint64, uint64) error { return mine }})
	m, b := donor(t, 9, rec("a", "9", 200))
	if err := send(t, s, m, b); !errors.Is(err, mine) {
		t.Fatal(err)
	}
	expect(t, contents(t, s), rec("a", "9", 200))
}

func TestInstallOfManyBatches(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	s.steps = buildSteps{page: 1000, written: 10000, synced: 30000}
	const n = 901
	m, b := donor(t, 9, manyRecords(n, 1000)...)
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	if err := CheckBolt(s.Path()); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s); len(got) != n {
		t.Fatal(len(got))
	}
	if _, again := stream(t, s); string(again) != string(b) {
		t.Fatal("equal states, different streams")
	}
}

// Whoever waits for an install sees it move at every step, whatever its size, and no step is a sync of everything at once.
func TestALargeInstallMovesInSmallSteps(t *testing.T) {
	const records, state = 3000, 1000
	var steps, syncs, most int
	since := 0 // bytes written since the last sync, by the steps of the records
	d := realDisk
	d.sync = func(path string, f syncer) error {
		syncs++
		most, since = max(most, since), 0
		return f.Sync()
	}
	s, err := openStore(t.TempDir(), Options{MaxFileSize: testMmap}, d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.steps = buildSteps{page: 3600, written: 50 * state, synced: 200 * state}
	s.SetOptions(Options{MaxFileSize: testMmap, Progress: func() { steps++; since += 50 * state }})
	var all []Record
	for i := range records {
		all = append(all, rec(fmt.Sprintf("%06d", i), strings.Repeat("x", state), 200))
	}
	m, b := donor(t, 9, all...)
	syncs = 0
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	if want := records / 50; steps < want {
		t.Errorf("it moved %d times, want %d: a step has at most 50 records of that size", steps, want)
	}
	if want := records / 200; syncs < want || most > 500*state {
		t.Errorf("%d syncs, the largest of about %d bytes", syncs, most)
	}
	steps = 0
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if verified := steps; verified < records/1024 {
		t.Errorf("verifying moved %d times", verified)
	}
	if err := r.Each(func(Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if steps < records/128 {
		t.Errorf("loading moved %d times", steps)
	}
}
