package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// buildFile builds a file of records without a store.
func buildFile(t interface{ Fatal(...any) }, path string, steps buildSteps, names, values [][]byte) {
	s := &Store{dir: filepath.Dir(path), mmap: testMmap, steps: steps, disk: realDisk}
	b, err := s.build(path, "test", &fileMeta{})
	for i := 0; err == nil && i < len(names); i++ {
		err = b.put(names[i], values[i], uint32(i))
	}
	if err == nil {
		err = b.end()
	}
	b.close()
	if err != nil {
		t.Fatal(err)
	}
}

// A file whose pages we make is a file of bbolt: ours and bbolt's own check find nothing, it has what was put, and bbolt goes on with it,
// whatever the lengths of names and values, and however full the pages.
func TestBoltReadsAndChangesTheTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "limitd-tree")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "file")
		var names, values [][]byte
		want := map[string][]byte{}
		n := rapid.SampledFrom([]int{0, 1, 2, 3, 30, 300, 3000}).Draw(t, "records")
		longest := rapid.SampledFrom([]int{0, 20, 2000, MaxName - 8}).Draw(t, "longest name")
		largest := rapid.SampledFrom([]int{13, 300, 9000}).Draw(t, "largest value")
		if longest > 20 || largest > 300 {
			n = min(n, 300)
		}
		for i := range n {
			name := binary.BigEndian.AppendUint64(nil, uint64(i))
			name = append(name, bytes.Repeat([]byte("n"), rapid.IntRange(0, longest).Draw(t, "more of the name"))...)
			value := bytes.Repeat([]byte{byte(i)}, rapid.IntRange(0, largest).Draw(t, "value"))
			names, values = append(names, name), append(values, value)
			want[string(name)] = value
		}
		steps := buildSteps{
			page:    rapid.SampledFrom([]int{1, 100, 1000, 3686, 4096}).Draw(t, "page"),
			written: rapid.SampledFrom([]int{1, 5000, 1 << 20}).Draw(t, "written"), synced: 8 << 20,
		}
		buildFile(t, path, steps, names, values)
		checkTree(t, path, want)

		// Changes anywhere, as the next snapshots make them, until little is left.
		db, err := openBolt(path, testMmap)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "transactions") {
			if err := db.Update(func(tx *bolt.Tx) error {
				b := tx.Bucket(bucketRecords)
				for range rapid.IntRange(0, n).Draw(t, "changes") {
					i := rapid.IntRange(0, n).Draw(t, "which")
					name := binary.BigEndian.AppendUint64(nil, uint64(i))
					if i < n && rapid.Bool().Draw(t, "one that is there") {
						name = names[i]
					}
					if rapid.IntRange(0, 2).Draw(t, "delete") > 0 {
						delete(want, string(name))
						if err := b.Delete(name); err != nil {
							return err
						}
						continue
					}
					want[string(name)] = []byte("changed")
					if err := b.Put(name, []byte("changed")); err != nil {
						return err
					}
				}
				return tx.Bucket(bucketMeta).Put(keyMeta, []byte("meta"))
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		checkTree(t, path, want)
	})
}

func checkTree(t *rapid.T, path string, want map[string][]byte) {
	if err := CheckBolt(path); err != nil {
		t.Fatal(err)
	}
	db, err := openBolt(path, testMmap)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error("bbolt's check:", err)
		}
		for _, name := range [][]byte{bucketLocal, bucketMeta, bucketRecords} {
			if tx.Bucket(name) == nil {
				t.Errorf("no bucket %q", name)
			}
		}
		n := 0
		var last []byte
		c := tx.Bucket(bucketRecords).Cursor()
		for name, value := c.First(); name != nil; name, value = c.Next() {
			if w, ok := want[string(name)]; !ok || !bytes.Equal(w, value) {
				t.Fatalf("%.20x has %.20x, want %.20x, %v", name, value, w, ok)
			}
			if n > 0 && bytes.Compare(last, name) >= 0 {
				t.Fatalf("%.20x comes after %.20x", name, last)
			}
			last = append(last[:0], name...)
			n++
		}
		if n != len(want) {
			t.Fatalf("%d records, want %d", n, len(want))
		}
		for name := range want {
			if tx.Bucket(bucketRecords).Get([]byte(name)) == nil {
				t.Fatalf("%.20x is not found", name)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// No branch leads to one page only, as in bbolt's own files, and what is put twice or out of order is refused.
func TestBranchesOfTheTree(t *testing.T) {
	for n := range 200 {
		tr := newTree(512, 64) // at most three to a branch
		for i := range n {
			tr.put(fmt.Appendf(nil, "%08d", i), []byte("v"))
		}
		tr.end()
		for at := 0; at < len(tr.out); at += 512 {
			if flags, count := binary.NativeEndian.Uint16(tr.out[at+8:]), binary.NativeEndian.Uint16(tr.out[at+10:]); flags == boltBranch && count < 2 {
				t.Fatalf("%d records: a branch to %d", n, count)
			}
		}
	}
	s := openTest(t, t.TempDir(), Options{})
	for _, second := range []string{"b", "a"} {
		b, err := s.build(filepath.Join(s.dir, nextName), "test", &fileMeta{})
		if err != nil {
			t.Fatal(err)
		}
		name := func(key string) []byte { return AppendName(nil, 0, []byte(key), []byte{1}) }
		if err := b.put(name("b"), []byte("v"), 0); err != nil {
			t.Fatal(err)
		}
		if err := b.put(name(second), []byte("v"), 0); err == nil {
			t.Errorf("%q was taken after \"b\"", second)
		}
		b.discard(nil)
		noLeftovers(t, s)
	}
}
