package cluster

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"go.etcd.io/bbolt"
)

// versionsOf is a log file as it was after each of some transactions that grow it, cut
// it at both ends and vote.
func versionsOf(t *testing.T) (path string, files [][]byte) {
	t.Helper()
	s, stable := openTestLog(t, t.TempDir(), func(err error) { t.Error(err) })
	keep := func() {
		b, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b[:min(len(b), 64*4096)]) // the rest is empty
	}
	for i := uint64(1); i <= 160; i += 4 {
		mustStore(t, s, entries(i, i+3))
		switch i {
		case 81: // a new leader has others
			if err := s.DeleteRange(71, 84); err != nil {
				t.Fatal(err)
			}
			again := entries(71, 84)
			for _, l := range again {
				l.Term = 9
			}
			mustStore(t, s, again)
		case 101:
			if err := s.DeleteRange(1, 60); err != nil {
				t.Fatal(err)
			}
			stable.SetUint64([]byte("CurrentTerm"), i)
		}
		if i > 60 {
			keep()
		}
	}
	if err := s.file.Close(); err != nil {
		t.Fatal(err)
	}
	keep()
	return s.path, files
}

// A page whose newest write was lost is one of an earlier transaction, whole, with all
// its checksums right. None may be served, whichever it is.
func TestPageOfAnEarlierTransactionIsNamed(t *testing.T) {
	t.Parallel()
	path, files := versionsOf(t)
	newest := files[len(files)-1]
	if err := os.WriteFile(path, newest, 0o600); err != nil {
		t.Fatal(err)
	}
	want := contents(t, path)
	named, harmless := 0, 0
	for _, old := range files[:len(files)-1] {
		for at := 2 * 4096; at < min(len(old), len(newest)); at += 4096 {
			if bytes.Equal(old[at:at+4096], newest[at:at+4096]) {
				continue
			}
			aged := bytes.Clone(newest)
			copy(aged[at:at+4096], old[at:])
			if err := os.WriteFile(path, aged, 0o600); err != nil {
				t.Fatal(err)
			}
			b, err := openLogFile(path, true)
			if err != nil {
				named++
				continue
			}
			b.Close()
			harmless++ // a free page
			if got := contents(t, path); got != want {
				t.Fatalf("page %d: the log is taken for\n%s, it was\n%s", at/4096, got, want)
			}
		}
	}
	if named < 20 {
		t.Errorf("%d pages were named, %d did not matter: this test does not test", named, harmless)
	}
}

// contents are the log and the stable store, as text.
func contents(t *testing.T, path string) string {
	t.Helper()
	var out bytes.Buffer
	db, err := openDB(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				out.WriteString(string(name) + " " + string(k) + " " + string(v) + "\n")
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What is whole, and not what was written.
func TestLogThatIsNotItsTallyIsNamed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(tx *bbolt.Tx) error{
		"nothing but a transaction": func(*bbolt.Tx) error { return nil },
		"the last entry is gone":    func(tx *bbolt.Tx) error { return tx.Bucket(bucketLogs).Delete(indexKey(60)) },
		"the first entry is gone":   func(tx *bbolt.Tx) error { return tx.Bucket(bucketLogs).Delete(indexKey(1)) },
		"an entry of another term": func(tx *bbolt.Tx) error {
			l := entries(30, 30)[0]
			l.Term = 7
			return tx.Bucket(bucketLogs).Put(indexKey(30), appendRow(nil, l))
		},
		"no tally":  func(tx *bbolt.Tx) error { return tx.Bucket(bucketStable).Delete(tallyKey) },
		"no log":    func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketLogs) },
		"no stable": func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketStable) },
		"short tally": func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketStable).Put(tallyKey, sealValue(tallyKey, []byte("1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := openTestLog(t, t.TempDir(), func(error) {})
			mustStore(t, s, entries(1, 60))
			s.file.Close()
			db, err := openDB(s.path, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(change), db.Close()); err != nil {
				t.Fatal(err)
			}
			if b, err := openBolt(s.path); !errors.As(err, &untrusted{}) {
				t.Errorf("%v", err)
				b.Close()
			}
		})
	}
}

// A write that failed, or that writes over an entry, must leave a tally that is right.
func TestTallyFollowsEveryWrite(t *testing.T) {
	t.Parallel()
	s, stable := openTestLog(t, t.TempDir(), func(error) {})
	b := s.file.(*boltLog)
	failed := errors.New("failed")
	mustStore(t, s, entries(1, 20))
	if err := b.update(func(tx *bbolt.Tx, tally *logTally) error {
		tally.add(appendRow(nil, entries(21, 21)[0]))
		return failed
	}); err != failed {
		t.Fatal(err)
	}
	mustStore(t, s, entries(15, 30)) // six of them are there
	stable.SetUint64([]byte("CurrentTerm"), 5)
	for _, cut := range [][2]uint64{{1, 4}, {28, 30}, {40, 50}} {
		if err := s.DeleteRange(cut[0], cut[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := b.tally
	if want.last != 27 || want.entries != 23 {
		t.Errorf("the tally is %v", want)
	}
	s.file.Close()
	again, err := openBolt(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.tally != want {
		t.Errorf("opened again, it is %v, was %v", again.tally, want)
	}
}
