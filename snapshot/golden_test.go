package snapshot

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

var rewrite = flag.Bool("update", false, "write the golden files of a new format version; those of an old one never change")

// The state in testdata: every way to write a record, and a receipt.
var (
	goldenMeta = Meta{Header: testHeader, Index: 9, Term: 4, Configuration: testConf, ConfigurationIndex: 1}
	golden     = []Record{
		rec("a", "state", 1000),
		{Name: AppendName(nil, 0, []byte("user:42"), []byte{1}), State: appendInt64(nil, 2000), Expiry: 2000},
		{Name: AppendName(nil, 15, nil, []byte("ident")), State: []byte{}, Expiry: 1 << 60},
	}
	goldenReceipt = Receipt{At: 100, Boot: 55, BootID: "4f1f6d3e-0000-4000-8000-1234567890ab"}
)

// A change of these bytes is a new format version, with golden files of its own; this code must go on reading the old ones.
func TestGoldenFiles(t *testing.T) {
	for file, l := range map[string]local{
		"snapshot-v1.db":      {receipt: &goldenReceipt},
		"snapshot-v1-note.db": {receipt: &goldenReceipt, note: []byte("what the node notes")},
	} {
		t.Run(file, func(t *testing.T) { goldenFile(t, filepath.Join("testdata", file), l) })
	}
}

func goldenFile(t *testing.T, dbFile string, l local) {
	written := filepath.Join(t.TempDir(), "golden.db")
	db, err := createBolt(written, testMmap)
	if err != nil {
		t.Fatal(err)
	}
	_, err = update(written, db, func(tx *bolt.Tx) error {
		m := fileMeta{Meta: goldenMeta}
		w := recordWriter{path: written, b: tx.Bucket(bucketRecords), m: &m}
		for i := range golden {
			if err := w.put(&golden[i]); err != nil {
				return err
			}
		}
		return putSnapshot(tx, m, l)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		b, err := os.ReadFile(written)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dbFile, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	dir := t.TempDir()
	old, err := os.ReadFile(dbFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fileName), old, 0o600); err != nil {
		t.Fatal(err)
	}
	if was, is := values(t, filepath.Join(dir, fileName)), values(t, written); was != is {
		t.Errorf("the file is written otherwise now:\n%s\nwas\n%s", is, was)
	}
	s := openTest(t, dir, Options{})
	expect(t, contents(t, s), golden...)
	if m, ok := s.Meta(); !ok || fmt.Sprint(m) != fmt.Sprint(goldenMeta) {
		t.Errorf("%+v", m)
	}
	if r, ok := s.Receipt(); !ok || r != *l.receipt {
		t.Errorf("%+v", r)
	}
	if note := s.Note(); !bytes.Equal(note, l.note) {
		t.Errorf("its note is %q", note)
	}
}

func TestGoldenStream(t *testing.T) {
	file := filepath.Join("testdata", "stream-v1.bin")
	if *rewrite {
		if err := os.WriteFile(file, write(t, testHeader, golden...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if h, records, err := read(bytes.NewReader(old)); err != nil || h != testHeader || fmt.Sprint(records) != fmt.Sprint(golden) {
		t.Error("the stream:", h, records, err)
	}
	if !bytes.Equal(old, write(t, testHeader, golden...)) {
		t.Error("the stream is written otherwise now")
	}
}

// values lists what is in the buckets of a file, in hex.
func values(t *testing.T, path string) (all string) {
	t.Helper()
	db, err := openBolt(path, testMmap)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(bucket []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				all += fmt.Sprintf("%s %x %x\n", bucket, k, v)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
