package snapshot

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

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
