package snapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOfflineReadingChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	commit(t, s, 5, 100, rec("a", "1", 900), rec("b", "2", 900))
	s.Close()
	os.Remove(filepath.Join(dir, lockName))
	before, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice: the first one gave everything back
		r, err := OpenOffline(dir)
		if err != nil {
			t.Fatal(err)
		}
		if m := r.Meta(); m.Index != 5 {
			t.Errorf("it tells of %+v", m)
		}
		n := 0
		if err := r.Each(func(Record) error { n++; return nil }); err != nil || n != 2 {
			t.Errorf("%d records, %v", n, err)
		}
		r.Close()
	}
	if after, _ := os.ReadFile(s.Path()); !bytes.Equal(before, after) {
		t.Error("the file has changed")
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("it left files: %v", files)
	}
}

func TestOfflineReadingSaysWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenOffline(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	s := openTest(t, dir, Options{})
	if _, err := OpenOffline(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	s.Close()
	if _, err := OpenOffline(dir); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("a file without a snapshot: %v", err)
	}
	if err := os.Truncate(s.Path(), 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOffline(dir); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file that was cut off: %v", err)
	}
}

func TestCopyIsAFileThatOpens(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	s := openTest(t, from, Options{Receipt: func() (Receipt, bool) { return oldReceiptForCopy, true }})
	commit(t, s, 5, 100, rec("a", "1", 900))
	s.Close()
	if err := CopyFile(from, to); err != nil {
		t.Fatal(err)
	}
	if err := CopyFile(from, to); err == nil {
		t.Error("a file was copied over another one")
	}
	c := openTest(t, to, Options{})
	expect(t, contents(t, c), rec("a", "1", 900))
	if r, ok := c.Receipt(); !ok || r != oldReceiptForCopy {
		t.Errorf("the copy has the receipt %+v", r)
	}
}

var oldReceiptForCopy = Receipt{At: 7, Boot: 8, BootID: "boot"}
