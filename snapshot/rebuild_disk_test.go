package snapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// What an interrupted snapshot left goes at the next start.
func TestWhatACrashLeftOfARebuildIsRemoved(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, Options{}).Close()
	for _, name := range []string{nextName, runsName} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half of it"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	noLeftovers(t, openTest(t, dir, Options{}))
}

func TestARebuildSyncsBeforeItRenames(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 5, 100, manyRecords(100, 1000)...)
	s.steps = buildSteps{page: 400, written: 400, synced: 2000}
	var calls []string
	s.disk = disk{
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
	rebuild(t, s, 6, 100, rec("a", "6", 200))
	n := len(calls)
	if n < 5 || !slices.Equal(calls[n-3:], []string{"sync snapshot.next", "rename snapshot.next snapshot.db", "sync directory"}) {
		t.Errorf("%q", calls)
	}
	if db := s.cur.db; db.NoSync || db.NoGrowSync {
		t.Error("the new file is not synced any more")
	}
}

// A directory whose sync failed may name the old file yet, when the power is back.
func TestAReplacedFileIsKeptIfTheDirectoryIsNotSynced(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 5, 100, manyRecords(100_000, 1000)...)
	old, err := os.Open(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	was, err := old.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s.disk.syncDir = func(string) error { return syscall.EIO }
	if err := addAndCommit(s, 6, 100, []Record{rec("a", "6", 200)}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	s.Close()
	if st, err := old.Stat(); err != nil || st.Size() != was.Size() {
		t.Errorf("it has %d bytes of %d (%v)", st.Size(), was.Size(), err)
	}
}

// A disk that fails leaves the snapshot of before, and is not trusted again; one that is full is, when it has room. What was handed over
// can be had again.
func TestADiskThatFailsDuringARebuild(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(*disk, error)
		err   error
		final bool // nothing is written any more
	}{
		"sync, full":            {func(d *disk, err error) { d.sync = func(string, syncer) error { return err } }, syscall.ENOSPC, false},
		"sync, failed":          {func(d *disk, err error) { d.sync = func(string, syncer) error { return err } }, syscall.EIO, true},
		"rename, full":          {func(d *disk, err error) { d.rename = func(string, string) error { return err } }, syscall.ENOSPC, false},
		"directory sync, full":  {func(d *disk, err error) { d.syncDir = func(string) error { return err } }, syscall.ENOSPC, true},
		"directory sync failed": {func(d *disk, err error) { d.syncDir = func(string) error { return err } }, syscall.EIO, true},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, dir, Options{})
			commit(t, s, 5, 100, rec("a", "5", 200))
			was := s.disk
			c.spoil(&s.disk, c.err)
			k := create(t, s, 6)
			if err := k.Add([]Record{rec("a", "6", 200), rec("b", "6", 200)}); err != nil {
				t.Fatal(err)
			}
			if err := k.Commit(Header{Last: 6, T: 100}, []Record{rec("c", "6", 200)}); !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			var names []string
			if err := k.Added(func(name []byte) error { names = append(names, describe(name)); return nil }); err != nil || len(names) != 3 {
				t.Error(names, err)
			}
			k.Release()
			noLeftovers(t, s)
			if final := s.Failed() != nil; final != c.final {
				t.Errorf("failed for good: %v", s.Failed())
			}
			s.disk = was
			if !c.final {
				expect(t, contents(t, s), rec("a", "5", 200))
				rebuild(t, s, 7, 100, rec("b", "7", 200))
				expect(t, contents(t, s), rec("a", "5", 200), rec("b", "7", 200))
			}
			s.Close()
			if err := CheckBolt(s.Path()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A portion for which there is no room has not been taken; those before it can be had again.
func TestAFullDiskDuringAPortion(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 5, 100, rec("a", "5", 200))
	k := create(t, s, 6)
	first := []Record{rec("a", "6", 200), gone("b")}
	if err := k.Add(first); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, runsName)
	drain := fill(t, path+" (deleted)")
	err := k.Add(manyRecords(20000, 1000))
	drain()
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) || s.Failed() != nil {
		t.Fatal(err, s.Failed())
	}
	var names []string
	if err := k.Added(func(name []byte) error { names = append(names, string(name)); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []string{string(first[0].Name), string(first[1].Name)}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if err := k.Commit(Header{Last: 6, T: 100}, []Record{rec("c", "6", 200)}); err != nil {
		t.Fatal(err)
	}
	k.Release()
	expect(t, contents(t, s), rec("a", "6", 200), rec("c", "6", 200))
}

// Nothing is believed of the portions that was not checked, though they were written a moment before.
func TestDamagedPortionsAreNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	records := []Record{rec("a", "6", 200), gone("b"), rec("c", "some state", 200)}
	s := openTest(t, dir, Options{})
	commit(t, s, 5, 100, rec("b", "5", 200))
	size := int64(0)
	for at := int64(0); at == 0 || at < size; at++ {
		k := create(t, s, 6)
		if err := k.Add(records); err != nil {
			t.Fatal(err)
		}
		size = k.runs.end()
		b := make([]byte, 1)
		if _, err := k.runs.f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 4
		if _, err := k.runs.f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		if err := k.Commit(Header{Last: 6, T: 100}, nil); err == nil {
			t.Fatalf("byte %d of a portion may be anything", at)
		}
		k.Release()
		noLeftovers(t, s)
		expect(t, contents(t, s), rec("b", "5", 200))
	}
}

// Damage of the file that is replaced must not get lost in the new one: neither of a record nor of a page.
func TestARebuildFindsDamage(t *testing.T) {
	damage := map[string]func(b *bolt.Bucket) error{
		"a record": func(b *bolt.Bucket) error {
			name := AppendName(nil, 0, []byte("b"), []byte{1})
			v := bytes.Clone(b.Get(name))
			v[len(v)-1] ^= 1
			return b.Put(name, v)
		},
		"a record that is lost": func(b *bolt.Bucket) error { return b.Delete(AppendName(nil, 0, []byte("b"), []byte{1})) },
	}
	for what, do := range damage {
		t.Run(what, func(t *testing.T) {
			s := openTest(t, t.TempDir(), Options{})
			commit(t, s, 5, 100, rec("a", "5", 200), rec("b", "5", 200))
			if err := s.cur.db.Update(func(tx *bolt.Tx) error { return do(tx.Bucket(bucketRecords)) }); err != nil {
				t.Fatal(err)
			}
			for _, records := range [][]Record{{rec("c", "6", 200)}, {{Deleted: true}, rec("c", "6", 200)}} {
				if err := addAndCommit(s, 6, 100, records); !errors.Is(err, ErrDamaged) {
					t.Error(err)
				}
			}
			noLeftovers(t, s)
		})
	}
}

// The file that was replaced is cut off in steps once nobody reads it, unless somebody has a link to it.
func TestAReplacedFileIsGivenBackUnlessItIsLinked(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	commit(t, s, 5, 100, manyRecords(100_000, 1000)...)
	gone, err := os.Open(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	was, err := gone.Stat()
	if err != nil || was.Size() <= shrinkStep {
		t.Fatal(was.Size(), err)
	}
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	rebuild(t, s, 6, 100, rec("a", "6", 200))
	read := 0
	if err := r.Each(func(Record) error { read++; return nil }); err != nil || read != 100_000 {
		t.Errorf("a reader of the old file got %d records: %v", read, err)
	}
	r.Close()
	s.shrinking.Wait()
	if st, err := gone.Stat(); err != nil || st.Size() > shrinkStep {
		t.Errorf("of the old file %d bytes are left (%v)", st.Size(), err)
	}

	kept := filepath.Join(dir, "kept")
	if err := os.Link(s.Path(), kept); err != nil {
		t.Fatal(err)
	}
	want := contents(t, s)
	rebuild(t, s, 7, 100, rec("b", "7", 200))
	if err := CheckBolt(kept); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.Rename(kept, s.Path()); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, openTest(t, dir, Options{})); len(got) != len(want) {
		t.Errorf("the link has %d records, want %d", len(got), len(want))
	}
}
