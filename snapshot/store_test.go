package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

const testMmap = 1 << 26

func openTest(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	o.MaxFileSize = testMmap
	s, err := OpenStore(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// rec is a record in namespace 0 whose state is text.
func rec(key, state string, expiry int64) Record {
	return Record{Name: AppendName(nil, 0, []byte(key), []byte{1}), State: []byte(state), Expiry: expiry}
}

func gone(key string) Record {
	return Record{Name: AppendName(nil, 0, []byte(key), []byte{1}), Deleted: true}
}

var testConf = raft.Configuration{Servers: []raft.Server{{ID: "n1-x", Address: "127.0.0.1:1"}}}

func create(t testing.TB, s *Store, index uint64) *Sink {
	t.Helper()
	k, err := s.Create(1, index, 1, testConf, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*Sink)
}

// commit writes a local snapshot whose last batch is its index.
func commit(t testing.TB, s *Store, index uint64, now int64, records ...Record) {
	t.Helper()
	k := create(t, s, index)
	defer k.Release()
	if err := k.Commit(Header{Last: index, T: now}, records); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents reads the newest snapshot record by record: name -> expiry and state.
func contents(t testing.TB, s *Store) map[string]string {
	t.Helper()
	m, err := readAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func readAll(s *Store) (map[string]string, error) {
	got := map[string]string{}
	r, err := s.open()
	if errors.Is(err, ErrNoSnapshot) {
		return got, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	err = r.Each(func(r Record) error {
		got[describe(r.Name)] = fmt.Sprintf("%d %q", r.Expiry, r.State)
		return nil
	})
	return got, err
}

func stream(t testing.TB, s *Store) (*raft.SnapshotMeta, []byte) {
	t.Helper()
	l, err := s.List()
	if err != nil || len(l) != 1 {
		t.Fatal(l, err)
	}
	m, rc, err := s.Open(l[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != m.Size {
		t.Fatalf("announced %d bytes, gave %d", m.Size, len(b))
	}
	return m, b
}

func want(records ...Record) map[string]string {
	m := map[string]string{}
	for _, r := range records {
		m[describe(r.Name)] = fmt.Sprintf("%d %q", r.Expiry, r.State)
	}
	return m
}

func expect(t testing.TB, got map[string]string, records ...Record) {
	t.Helper()
	if w := want(records...); !maps.Equal(got, w) {
		t.Fatalf("got  %v\nwant %v", got, slices.Sorted(maps.Keys(w)))
	}
}

func TestASnapshotIsThereAfterRestart(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	if _, ok := s.Meta(); ok {
		t.Fatal("an empty store has a snapshot")
	}
	commit(t, s, 5, 100, rec("a", "1", 200), rec("b", "2", 200), rec("c", "3", 200))
	commit(t, s, 9, 150, rec("a", "4", 300), gone("b"))
	expect(t, contents(t, s), rec("a", "4", 300), rec("c", "3", 200))
	m1, _ := s.Meta()
	s.Close()
	s = openTest(t, dir, Options{})
	expect(t, contents(t, s), rec("a", "4", 300), rec("c", "3", 200))
	m2, ok := s.Meta()
	if !ok || fmt.Sprint(m1) != fmt.Sprint(m2) || m2.Index != 9 || m2.T != 150 || len(m2.Configuration.Servers) != 1 {
		t.Fatalf("%+v, was %+v", m2, m1)
	}
}

func send(t testing.TB, s *Store, m *raft.SnapshotMeta, b []byte) error {
	t.Helper()
	k, err := s.Create(1, m.Index, m.Term, m.Configuration, m.ConfigurationIndex, nil)
	if err != nil {
		return err
	}
	if _, err := k.Write(b); err != nil {
		k.Cancel()
		return err
	}
	return k.Close()
}

func TestInstallReplacesTheFile(t *testing.T) {
	from, to := openTest(t, t.TempDir(), Options{}), openTest(t, t.TempDir(), Options{})
	commit(t, from, 50, 100, rec("a", "1", 200), rec("b", "2", 200))
	commit(t, to, 5, 90, rec("z", "1", 200))
	m, b := stream(t, from)
	if err := send(t, to, m, b); err != nil {
		t.Fatal(err)
	}
	expect(t, contents(t, to), rec("a", "1", 200), rec("b", "2", 200))
	_, b2 := stream(t, to)
	if string(b) != string(b2) {
		t.Fatal("equal states, different streams")
	}
	commit(t, to, 60, 110, rec("c", "3", 200))
	expect(t, contents(t, to), rec("a", "1", 200), rec("b", "2", 200), rec("c", "3", 200))
}

func TestCommitBelowTheFileIsSuperseded(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 9, 100, rec("a", "1", 200))
	k := create(t, s, 8)
	if err := k.Commit(Header{Last: 8, T: 100}, []Record{rec("a", "older", 200)}); !errors.Is(err, ErrSuperseded) {
		t.Fatal(err)
	}
	if err := k.Close(); !errors.Is(err, ErrSuperseded) {
		t.Fatal("Close forgot that Commit failed:", err)
	}
	k.Release()
	expect(t, contents(t, s), rec("a", "1", 200))
}

func TestCommitAtTheSameIndexRewritesTheMeta(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 9, 100, rec("a", "1", 200))
	other := raft.Configuration{Servers: []raft.Server{{ID: "n2-y", Address: "127.0.0.1:2"}}}
	sink, err := s.Create(1, 9, 1, other, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := sink.(*Sink)
	defer k.Release()
	if err := k.Commit(Header{Last: 9, T: 100}, nil); err != nil {
		t.Fatal(err)
	}
	if m, _ := s.Meta(); m.ConfigurationIndex != 7 || m.Configuration.Servers[0].ID != "n2-y" {
		t.Fatalf("%+v", m)
	}
	expect(t, contents(t, s), rec("a", "1", 200))
}

func TestARecordThatIsNotAliveIsNeitherWrittenNorServed(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 1, 100, rec("late", "1", 100), rec("soon", "2", 101), rec("far", "3", 900))
	expect(t, contents(t, s), rec("soon", "2", 101), rec("far", "3", 900))
	commit(t, s, 2, 101)
	expect(t, contents(t, s), rec("far", "3", 900))
	var expired []string
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = r.EachExpired(func(Record) error { return nil }, func(name []byte) error {
		expired = append(expired, describe(name))
		return nil
	})
	if err != nil || !slices.Equal(expired, []string{describe(rec("soon", "", 0).Name)}) {
		t.Fatal(expired, err)
	}
	commit(t, s, 3, 101, rec("far", "4", 101)) // written as expired: removed
	expect(t, contents(t, s))
	if s.meta.records != 1 {
		t.Fatal("the file holds", s.meta.records)
	}
}

func TestShortDeletedNamesClear(t *testing.T) {
	in := func(ns uint8, key string) Record {
		return Record{Name: AppendName(nil, ns, []byte(key), []byte{1}), State: []byte("x"), Expiry: 900}
	}
	s := openTest(t, t.TempDir(), Options{})
	var many []Record
	for i := range 12000 { // more than one round of the clearing loop
		many = append(many, in(3, fmt.Sprint(i)))
	}
	commit(t, s, 1, 100, append(many, in(0, "a"), in(1, "a"), in(1, "b"), in(2, "a"))...)
	commit(t, s, 2, 100, Record{Name: []byte{1}, Deleted: true}, in(1, "c"), Record{Name: []byte{3}, Deleted: true})
	expect(t, contents(t, s), in(0, "a"), in(1, "c"), in(2, "a"))
	commit(t, s, 3, 100, Record{Deleted: true}, in(4, "z"))
	expect(t, contents(t, s), in(4, "z"))
}

func TestRecordsThatCannotBeStreamedAreRefused(t *testing.T) {
	long := make([]byte, MaxKey+1)
	for what, r := range map[string]Record{
		"no identity":   {Name: AppendName(nil, 0, []byte("k"), nil), Expiry: 900},
		"long identity": {Name: AppendName(nil, 0, []byte("k"), long[:256]), Expiry: 900},
		"long name":     {Name: AppendName(nil, 0, long, long[:MaxIdent]), Expiry: 900},
		"longer name":   {Name: AppendName(nil, 0, make([]byte, 70000), []byte{1}), Expiry: 900},
		"short name":    {Name: []byte{0, 0}, Expiry: 900},
		"big state":     {Name: AppendName(nil, 0, []byte("k"), []byte{1}), State: make([]byte, MaxState+1), Expiry: 900},
	} {
		s := openTest(t, t.TempDir(), Options{})
		commit(t, s, 1, 100, rec("a", "1", 200))
		k := create(t, s, 2)
		if err := k.Commit(Header{Last: 2, T: 100}, []Record{rec("a", "2", 200), r}); err == nil {
			t.Error(what, "was written")
		}
		k.Release()
		expect(t, contents(t, s), rec("a", "1", 200))
	}
	s := openTest(t, t.TempDir(), Options{})
	longest := Record{Name: AppendName(nil, 0, long[:MaxKey], long[:MaxIdent]), State: make([]byte, MaxState), Expiry: 900}
	commit(t, s, 1, 100, longest)
	if _, b := stream(t, s); len(b) < MaxState+MaxName {
		t.Fatal(len(b))
	} else if _, err := Inspect(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
}

func TestReleaseAtAnyTimeAndSinksThatWereNotUsed(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	k := create(t, s, 1)
	k.Release() // never committed
	if err := k.Commit(Header{Last: 1, T: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Commit(Header{Last: 1, T: 1}, nil); err == nil {
		t.Fatal("a second Commit on one sink")
	}
	if _, err := k.Write([]byte("x")); err == nil {
		t.Fatal("Write after Commit")
	}
	k.Release()
	k.Release()
	for range 2 {
		if err := errors.Join(k.Close(), k.Cancel()); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(t, s, 2).Close(); err == nil {
		t.Fatal("a sink that nothing was written to closed well")
	}
	if err := create(t, s, 2).Cancel(); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 3, 1) // the turn is free
	if _, err := s.Create(1, 0, 0, testConf, 0, nil); err == nil {
		t.Fatal("a snapshot at index 0")
	}
}

func TestReceiptsSurvive(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	if _, ok := s.Receipt(); ok {
		t.Fatal("a receipt in an empty file")
	}
	saved := Receipt{At: 5, Boot: 6, BootID: "first"}
	if err := s.SaveReceipt(saved); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 1, 100, rec("a", "1", 200)) // nobody has a newer one
	s.Close()
	s = openTest(t, dir, Options{})
	if r, ok := s.Receipt(); !ok || r != saved {
		t.Fatal(r, ok)
	}
	newer := Receipt{At: 7, Boot: -8, BootID: ""}
	s.SetOptions(Options{Receipt: func() (Receipt, bool) { return newer, true }})
	commit(t, s, 2, 100)
	s.Close()
	s = openTest(t, dir, Options{})
	if r, ok := s.Receipt(); !ok || r != newer {
		t.Fatal(r, ok)
	}
	from := openTest(t, t.TempDir(), Options{})
	commit(t, from, 9, 100)
	m, b := stream(t, from)
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = openTest(t, dir, Options{})
	if r, ok := s.Receipt(); !ok || r != newer {
		t.Fatal("the installed file has the receipt", r, ok)
	}
	if bytes.Contains(b, []byte("first")) {
		t.Fatal("a receipt in a stream")
	}
}

func TestTwoProcessesOnOneDirectory(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, Options{})
	began := time.Now()
	_, err := OpenStore(dir, Options{MaxFileSize: testMmap})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), filepath.Join(dir, "snapshot.db")) {
		t.Fatal(err)
	}
	if _, err := SetAside(dir); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Fatal("took", d)
	}
}

func TestADirectoryThatIsNotThere(t *testing.T) {
	if _, err := OpenStore(filepath.Join(t.TempDir(), "no"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestWhatACrashLeftOfAnInstallIsRemoved(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, Options{}).Close()
	left := filepath.Join(dir, newName)
	if err := os.WriteFile(left, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir, Options{})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestTransactionsAreSyncedOnEveryLiveFile(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	synced := func(when string) {
		t.Helper()
		if db := s.cur.db; db.NoSync || db.NoGrowSync {
			t.Fatal(when, "the live file is not synced")
		}
	}
	synced("after it was created")
	commit(t, s, 1, 1)
	m, b := stream(t, s)
	s.Close()
	s = openTest(t, dir, Options{})
	synced("after it was opened")
	m.Index = 2
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	synced("after an install")
	rebuild(t, s, 3, 1)
	synced("after a large snapshot")
}
