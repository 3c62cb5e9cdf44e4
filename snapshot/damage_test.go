package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// closedFile returns the path of a whole file with the records of two commits, closed.
func closedFile(t testing.TB) (path string, records []Record) {
	t.Helper()
	dir := t.TempDir()
	s := openTest(t, dir, Options{Receipt: func() (Receipt, bool) { return Receipt{At: 100, Boot: 7, BootID: "boot"}, true }})
	for i := range 300 {
		records = append(records, rec(strings.Repeat("k", 1+i%3)+string(rune('a'+i%26))+strings.Repeat("z", i/26), "state of it", 500+int64(i)))
	}
	commit(t, s, 1, 100, records[:200]...)
	commit(t, s, 2, 110, records[200:]...)
	s.Close()
	return s.Path(), records
}

// serve opens the file of a directory and reads everything in it, as a starting node does.
func serve(dir string) (map[string]string, Meta, error) {
	s, err := OpenStore(dir, Options{MaxFileSize: testMmap})
	if err != nil {
		return nil, Meta{}, err
	}
	defer s.Close()
	got, err := readAll(s)
	m, _ := s.Meta()
	return got, m, err
}

func flip(t testing.TB, path string, at int64, bits byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= bits
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

// find returns where in a file the value of a record is.
func find(t testing.TB, file, name []byte) int {
	t.Helper()
	for at := len(file); ; {
		if at = bytes.LastIndex(file[:at], name); at < 0 {
			t.Fatal("no such record")
		}
		for n := valueMin; n < 100; n++ {
			if from := at + len(name); from+n <= len(file) {
				if _, ok := decodeValue(name, file[from:from+n]); ok {
					return from
				}
			}
		}
	}
}

func TestADamagedRecordIsNamedAndNeverServed(t *testing.T) {
	path, _ := closedFile(t)
	at := find(t, pagesInUse(t, path), rec("kkkc", "", 0).Name)
	flip(t, path, int64(at+6), 4) // its expiry
	s := openTest(t, filepath.Dir(path), Options{})
	_, _, err := s.Open("1-2")
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), `key "kkkc"`) || !strings.Contains(err.Error(), path) {
		t.Fatal(err)
	}
	if _, err := s.SaveTo(filepath.Join(t.TempDir(), "save")); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	k := create(t, s, 3)
	defer k.Release()
	if err := k.Commit(Header{Last: 3, T: 120}, []Record{rec("kkkc", "over it", 900)}); !errors.Is(err, ErrDamaged) {
		t.Fatal("written over:", err)
	}
}

// Damage that comes while a reader is at work, after Open has checked the file.
func TestARecordDamagedUnderAReader(t *testing.T) {
	for _, how := range []string{"flipped", "cut off"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, dir, Options{})
			commit(t, s, 1, 100, manyRecords(5000, 1000)...)
			for _, use := range []func(*Reader) error{
				func(r *Reader) error { _, err := io.Copy(io.Discard, r); return err },
				func(r *Reader) error { return r.Each(func(Record) error { return nil }) },
			} {
				r, err := s.open()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				data := pagesInUse(t, s.Path())
				at := find(t, data, manyRecords(4002, 1000)[4001].Name)
				if how == "flipped" {
					flip(t, s.Path(), int64(at), 1)
				} else if err := os.Truncate(s.Path(), int64(at)&^4095); err != nil { // the pages are gone: SIGBUS
					t.Fatal(err)
				}
				if err := use(r); !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
				if how == "flipped" {
					flip(t, s.Path(), int64(at), 1)
				} else if err := os.WriteFile(s.Path(), data, 0); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// One flipped bit anywhere in the pages that are in use: the node says so, or serves exactly what was committed.
func TestNoFlippedBitIsServed(t *testing.T) {
	path, records := closedFile(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pages := int64(inUse(t, path)) * 4096
	want := want(records...)
	rng := rand.New(rand.NewPCG(1, 2))
	kept, named := 0, 0
	for range 400 {
		at, bit := rng.Int64N(pages), byte(1)<<rng.IntN(8)
		flip(t, path, at, bit)
		got, m, err := serve(filepath.Dir(path))
		switch {
		case err == nil && m.Index == 2 && maps.Equal(got, want):
			kept++ // nothing that anybody reads
		case errors.Is(err, ErrDamaged) && strings.Contains(err.Error(), path):
			named++
		default:
			t.Fatalf("byte %d, bit %x: %v, %+v, %d records", at, bit, err, m, len(got))
		}
		flip(t, path, at, bit)
	}
	if named < 80 || kept == 0 {
		t.Errorf("%d flips were named and %d did not matter: this test does not test", named, kept)
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, whole) {
		t.Fatal("serving changed the file")
	}
}

// inUse returns the number of pages of a bbolt file, without what the file grew ahead.
func inUse(t testing.TB, path string) uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	c := boltCheck{f: f, path: path, size: st.Size()}
	if _, _, err := c.metas(); err != nil {
		t.Fatal(err)
	}
	return c.high
}

// pagesInUse reads a bbolt file without what it grew ahead.
func pagesInUse(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b[:inUse(t, path)*4096]
}

func TestTheFileWithoutItsMetaOrItsBuckets(t *testing.T) {
	for what, spoil := range map[string]func(*bolt.Tx) error{
		"meta data": func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyMeta) },
		"records":   func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketRecords) },
		"a record": func(tx *bolt.Tx) error {
			k, _ := tx.Bucket(bucketRecords).Cursor().First()
			return tx.Bucket(bucketRecords).Delete(k)
		},
		"older records": func(tx *bolt.Tx) error {
			r := rec("kkkc", "as it was once", 900)
			v, _ := appendValue(nil, r.Name, r.State, r.Expiry)
			return tx.Bucket(bucketRecords).Put(r.Name, v)
		},
		"receipt": func(tx *bolt.Tx) error { return tx.Bucket(bucketLocal).Put(keyReceipt, []byte{1, 2, 3}) },
		"note":    func(tx *bolt.Tx) error { return tx.Bucket(bucketLocal).Put(keyNote, []byte("another note, old sum")) },
	} {
		path, _ := closedFile(t)
		db, err := openBolt(path, testMmap)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(spoil), db.Close()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := serve(filepath.Dir(path)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestANewerFormatIsNotCalledDamage(t *testing.T) {
	path, _ := closedFile(t)
	db, err := openBolt(path, testMmap)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(keyMeta, binary.LittleEndian.AppendUint32([]byte{Reads + 1}, crc32.Checksum([]byte{Reads + 1}, castagnoli)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	_, _, err = serve(filepath.Dir(path))
	if !errors.Is(err, ErrVersion) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Fatal(err)
	}
}

func TestSetAsideKeepsEveryDamagedFile(t *testing.T) {
	dir := t.TempDir()
	for n, want := range []string{"snapshot.db.damaged-1", "snapshot.db.damaged-2"} {
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte{byte(n)}, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenStore(dir, Options{MaxFileSize: testMmap}); !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		aside, err := SetAside(dir)
		if err != nil || aside != filepath.Join(dir, want) {
			t.Fatal(aside, err)
		}
		if b, _ := os.ReadFile(aside); len(b) != 1 || b[0] != byte(n) {
			t.Fatal("not the file that was damaged")
		}
	}
	openTest(t, dir, Options{}).Close()
	if _, err := SetAside(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("set aside what is not there:", err)
	}
}
