package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// addAndCommit writes a local snapshot in portions, each of which must be in name order.
func addAndCommit(s *Store, index uint64, now int64, portions ...[]Record) error {
	sink, err := s.Create(1, index, 1, testConf, 1, nil)
	if err != nil {
		return err
	}
	k := sink.(*Sink)
	defer k.Release()
	for _, records := range portions {
		if err := k.Add(records); err != nil {
			return err
		}
	}
	if err := k.Commit(Header{Last: index, T: now}, nil); err != nil {
		return err
	}
	return k.Close()
}

func rebuild(t testing.TB, s *Store, index uint64, now int64, records ...Record) {
	t.Helper()
	if err := addAndCommit(s, index, now, records); err != nil {
		t.Fatal(err)
	}
	noLeftovers(t, s)
}

// A snapshot by portions must hold what the same records hold in one transaction: the same stream, whatever is replaced, removed, cleared
// or has expired, and however the portions are cut. Every snapshot goes on from the one before it, by either way.
func TestPortionsAreTheSameSnapshotAsOneTransaction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dirs := [2]string{}
		for i := range dirs {
			dir, err := os.MkdirTemp("", "limitd-portions")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			dirs[i] = dir
		}
		var stores [2]*Store
		for i, dir := range dirs {
			s, err := OpenStore(dir, Options{MaxFileSize: testMmap})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.steps = buildSteps{page: rapid.IntRange(1, 1000).Draw(t, "page"), written: 2000, synced: 5000}
			stores[i] = s
		}
		one, many := stores[0], stores[1]
		now := int64(100)
		for index := range uint64(rapid.IntRange(1, 5).Draw(t, "snapshots")) {
			now += rapid.Int64Range(0, 5).Draw(t, "step")
			byName := map[string]Record{}
			for range rapid.IntRange(0, 60).Draw(t, "changes") {
				r := Record{
					Name:    AppendName(nil, uint8(rapid.IntRange(0, 2).Draw(t, "ns")), fmt.Append(nil, "key", rapid.IntRange(0, 40).Draw(t, "key")), []byte{1}),
					Expiry:  now + rapid.Int64Range(-2, 20).Draw(t, "life"),
					Deleted: rapid.IntRange(0, 4).Draw(t, "delete") == 0,
				}
				switch rapid.IntRange(0, 30).Draw(t, "state") {
				case 0:
					r.State = bytes.Repeat([]byte("x"), 3000)
				case 1, 2, 3:
					r.State = []byte("state")
				default:
					r.State = appendInt64(nil, r.Expiry)
				}
				byName[string(r.Name)] = r
			}
			if rapid.IntRange(0, 6).Draw(t, "clear") == 0 {
				name := rapid.SampledFrom([]string{"", "\x00", "\x01", "\x02"}).Draw(t, "clear what")
				byName[name] = Record{Name: []byte(name), Deleted: true}
			}
			var all []Record
			for _, r := range byName {
				all = append(all, r)
			}
			slices.SortFunc(all, func(a, b Record) int { return bytes.Compare(a.Name, b.Name) })
			h := Header{Last: index + 1, T: now}
			sink, err := one.Create(1, index+1, 1, testConf, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = sink.(*Sink).Commit(h, all)
			sink.(*Sink).Release()
			if err != nil {
				t.Fatal(err)
			}
			// Each record goes to any of the portions, with an older one of its name in some of those before.
			portions := make([][]Record, rapid.IntRange(0, 4).Draw(t, "portions"))
			for i := range portions {
				for _, r := range all {
					if rapid.IntRange(0, 3).Draw(t, "in") == 0 {
						if old := r; len(r.Name) > 1 && i+1 < len(portions) {
							old.State, old.Expiry = []byte("older"), now+9
							portions[i] = append(portions[i], old)
						}
					}
				}
			}
			last := all
			if n := len(portions); n > 0 {
				portions[n-1], last = nil, nil
				for _, r := range all {
					if rapid.Bool().Draw(t, "in the last") {
						last = append(last, r)
					} else {
						portions[n-1] = append(portions[n-1], r)
					}
				}
			}
			if sink, err = many.Create(1, index+1, 1, testConf, 1, nil); err != nil {
				t.Fatal(err)
			}
			k := sink.(*Sink)
			for _, p := range portions {
				if err := k.Add(p); err != nil {
					t.Fatal(err)
				}
			}
			err = k.Commit(h, last)
			k.Release()
			if err != nil {
				t.Fatal(err)
			}
			same(t, one, many)
		}
		// What the file has is what its meta data says, and bolt's pages are in order.
		many.Close()
		if err := CheckBolt(many.Path()); err != nil {
			t.Fatal(err)
		}
		again, err := OpenStore(many.dir, Options{MaxFileSize: testMmap})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		same(t, one, again)
	})
}

// same compares the streams and the meta data of two stores.
func same(t *rapid.T, a, b *Store) {
	var sums [2][]byte
	for i, s := range []*Store{a, b} {
		r, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		if sums[i], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	ma, _ := a.Meta()
	mb, _ := b.Meta()
	if !bytes.Equal(sums[0], sums[1]) || fmt.Sprint(ma) != fmt.Sprint(mb) {
		t.Fatalf("one transaction: %+v\n%q\nportions: %+v\n%q", ma, sums[0], mb, sums[1])
	}
}

// Records that a transaction would take too much memory or time for go the other way by themselves: those that are far apart in the file,
// and not those that are neighbours; and most of a file.
func TestManyPagesAreNotChangedInOneTransaction(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 1, 100, manyRecords(20000, 1000)...)
	s.pages = 100
	at := func(index uint64, records []Record) (replaced bool) {
		t.Helper()
		was := inode(t, s)
		commit(t, s, index, 100, records...)
		return inode(t, s) != was
	}
	all := manyRecords(20000, 2000)
	var spread []Record
	for i := 0; i < len(all); i += 20 {
		spread = append(spread, all[i])
	}
	if at(2, all[5000:6000]) {
		t.Error("1000 neighbours are a new file")
	}
	if !at(3, spread) {
		t.Error("1000 records that are far apart are one transaction")
	}
	if at(4, spread[:100]) {
		t.Error("100 records are a new file")
	}
	slices.Reverse(spread)
	if at(5, spread) {
		t.Error("records that are not in order are a new file")
	}
	if got := len(contents(t, s)); got != 20000 {
		t.Error(got, "records")
	}
	s = openTest(t, t.TempDir(), Options{})
	if !at(1, all) {
		t.Error("20000 records go into an empty file in one transaction")
	}
	if !at(2, all) {
		t.Error("all records are changed in one transaction")
	}
	if at(3, all[:1500]) {
		t.Error("few neighbours are a new file")
	}
}

// A reader has the snapshot that it began with, though the file is another one by then; what is local goes with the file.
func TestAReaderKeepsTheFileThatWasReplaced(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{Note: func() []byte { return []byte("note") }})
	commit(t, s, 5, 100, rec("a", "5", 200), rec("b", "5", 200))
	if err := s.SaveReceipt(Receipt{At: 7}); err != nil {
		t.Fatal(err)
	}
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rebuild(t, s, 6, 100, rec("a", "6", 200), gone("b"), rec("c", "6", 200))
	old := map[string]string{}
	if err := r.Each(func(r Record) error { old[describe(r.Name)] = fmt.Sprintf("%d %q", r.Expiry, r.State); return nil }); err != nil {
		t.Fatal(err)
	}
	expect(t, old, rec("a", "5", 200), rec("b", "5", 200))
	expect(t, contents(t, s), rec("a", "6", 200), rec("c", "6", 200))
	if err := s.SaveReceipt(Receipt{At: 8}); err != nil { // the new file is written now
		t.Fatal(err)
	}
	commit(t, s, 7, 100, rec("d", "7", 200))
	s.Close()
	s = openTest(t, dir, Options{})
	expect(t, contents(t, s), rec("a", "6", 200), rec("c", "6", 200), rec("d", "7", 200))
	if r, _ := s.Receipt(); r.At != 8 || string(s.Note()) != "note" {
		t.Errorf("receipt %+v, note %q", r, s.Note())
	}
}

// Receipts do not wait for a snapshot that takes long, and it does not lose them.
func TestReceiptsAreWrittenDuringARebuild(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	commit(t, s, 5, 100, manyRecords(3000, 1000)...)
	wrote := false
	s.SetOptions(Options{Progress: func() {
		if !wrote && inProgress(s) {
			wrote = true
			if err := s.SaveReceipt(Receipt{At: 77}); err != nil {
				t.Error(err)
			}
		}
	}})
	rebuild(t, s, 6, 100, manyRecords(10, 2000)...)
	if !wrote {
		t.Fatal("the snapshot told of no progress while it was built")
	}
	s.Close()
	s = openTest(t, dir, Options{})
	if r, ok := s.Receipt(); !ok || r.At != 77 {
		t.Errorf("receipt %+v", r)
	}
}

func inProgress(s *Store) bool {
	_, err := os.Stat(filepath.Join(s.dir, nextName))
	return err == nil
}

func TestPortionsOutOfOrderAreRefused(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 5, 100, rec("a", "5", 200))
	for what, records := range map[string][]Record{
		"order":      {rec("b", "6", 200), rec("a", "6", 200)},
		"twice":      {rec("b", "6", 200), rec("b", "7", 200)},
		"short name": {{Name: []byte{0, 0}, Expiry: 900}},
		"big state":  {{Name: AppendName(nil, 0, []byte("k"), []byte{1}), State: make([]byte, MaxState+1), Expiry: 900}},
	} {
		if err := addAndCommit(s, 6, 100, records); err == nil {
			t.Error(what, "was taken")
		}
	}
	if err := addAndCommit(s, 4, 100, []Record{rec("a", "4", 200)}); !errors.Is(err, ErrSuperseded) {
		t.Error(err)
	}
	expect(t, contents(t, s), rec("a", "5", 200))
}

// A store that is closed, or a node that stops, does not wait until a large snapshot is written.
func TestALargeSnapshotIsGivenUpWhenTheNodeStops(t *testing.T) {
	for what, stop := range map[string]func(s *Store, stopping *bool) chan error{
		"stopping": func(s *Store, stopping *bool) chan error { *stopping = true; return nil },
		"closed": func(s *Store, _ *bool) chan error {
			done := make(chan error, 1)
			go func() { done <- s.Close() }()
			for {
				s.mu.Lock()
				closed := s.closed
				s.mu.Unlock()
				if closed {
					return done
				}
				time.Sleep(time.Millisecond)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, dir, Options{})
			commit(t, s, 5, 100, manyRecords(5000, 1000)...)
			stopping := false
			var closed chan error
			once := false
			s.SetOptions(Options{
				Stopping: func() bool { return stopping },
				Progress: func() {
					if !once && inProgress(s) {
						once = true
						closed = stop(s, &stopping)
					}
				},
			})
			if err := addAndCommit(s, 6, 100, []Record{rec("a", "6", 200)}); !errors.Is(err, ErrClosed) {
				t.Fatal(err)
			}
			if closed != nil {
				if err := <-closed; err != nil {
					t.Fatal(err)
				}
			}
			noLeftovers(t, s)
			s.Close()
			s = openTest(t, dir, Options{})
			expect(t, contents(t, s), manyRecords(5000, 1000)...)
		})
	}
}

// A follower may be sent a snapshot while it writes a large one of its own. The newer one is the file in the end.
func TestAnInstallDuringARebuild(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 5, 100, manyRecords(2000, 1000)...)
	m, b := donor(t, 9, rec("a", "9", 200))
	installed := make(chan error, 1)
	begun := false
	s.SetOptions(Options{Progress: func() {
		if !begun && inProgress(s) {
			begun = true
			k := create(t, s, m.Index)
			if _, err := k.Write(b); err != nil {
				t.Error(err)
			}
			go func() { installed <- k.Close() }()
		}
	}})
	if err := addAndCommit(s, 6, 100, []Record{rec("a", "6", 200)}); err != nil {
		t.Fatal(err)
	}
	if err := <-installed; err != nil || !begun {
		t.Fatal(begun, err)
	}
	expect(t, contents(t, s), rec("a", "9", 200))
	noLeftovers(t, s)
}
