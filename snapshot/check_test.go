package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// boltFile makes a bbolt file of several levels, with buckets in buckets, an empty one, long values and free pages.
func boltFile(t testing.TB, o *bolt.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raft.db")
	db, err := bolt.Open(path, 0o600, o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{"logs", "conf", "empty"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		inner, err := tx.Bucket([]byte("conf")).CreateBucket([]byte("inner"))
		if err != nil {
			return err
		}
		for i := range 1500 {
			v := make([]byte, 40+i%50)
			if i%300 == 0 {
				v = make([]byte, 20000)
			}
			if err := tx.Bucket([]byte("logs")).Put(fmt.Appendf(nil, "%08d", i), v); err != nil {
				return err
			}
			if err := inner.Put(fmt.Appendf(nil, "%d", i), v[:9]); err != nil {
				return err
			}
		}
		return nil
	})
	for i := 0; i < 3 && err == nil; i++ {
		err = db.Update(func(tx *bolt.Tx) error {
			for j := range 150 {
				if err := tx.Bucket([]byte("logs")).Delete(fmt.Appendf(nil, "%08d", 150*i+j)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var boltKinds = map[string]*bolt.Options{
	"free list on disk": {},
	"no free list":      {NoFreelistSync: true, FreelistType: bolt.FreelistMapType},
	"big pages":         {PageSize: 16384},
	"small pages":       {PageSize: 1024, NoFreelistSync: true},
}

func TestWholeFilesPass(t *testing.T) {
	for what, o := range boltKinds {
		if err := CheckBolt(boltFile(t, o)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	path := filepath.Join(t.TempDir(), "fresh.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := CheckBolt(path); err != nil {
		t.Error("an empty database:", err)
	}
}

func TestSpoiltFilesAreNamed(t *testing.T) {
	whole, err := os.ReadFile(boltFile(t, &bolt.Options{NoFreelistSync: true, PageSize: 4096}))
	if err != nil {
		t.Fatal(err)
	}
	page := func(i int64) int64 { return i * 4096 }
	zero := func(t *testing.T, path string, from, to int64) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(make([]byte, to-from), from); err != nil {
			t.Fatal(err)
		}
	}
	high := func(t *testing.T, path string) int64 { return int64(inUse(t, path)) }
	for what, spoil := range map[string]func(t *testing.T, path string){
		"meta page 0 flipped":       func(t *testing.T, path string) { flip(t, path, 16+17, 1) },
		"meta page 1 flipped":       func(t *testing.T, path string) { flip(t, path, page(1)+16+17, 1) },
		"meta page 0 zeroed":        func(t *testing.T, path string) { zero(t, path, 0, page(1)) },
		"meta page 1 zeroed":        func(t *testing.T, path string) { zero(t, path, page(1), page(2)) },
		"both meta pages flipped":   func(t *testing.T, path string) { flip(t, path, 20, 1); flip(t, path, page(1)+20, 1) },
		"empty":                     func(t *testing.T, path string) { truncate(t, path, 0) },
		"one byte":                  func(t *testing.T, path string) { truncate(t, path, 1) },
		"one page":                  func(t *testing.T, path string) { truncate(t, path, page(1)) },
		"two pages":                 func(t *testing.T, path string) { truncate(t, path, page(2)) },
		"half":                      func(t *testing.T, path string) { truncate(t, path, page(high(t, path)/2)) },
		"last page gone":            func(t *testing.T, path string) { truncate(t, path, page(high(t, path))-1) },
		"everything but the metas":  func(t *testing.T, path string) { zero(t, path, page(2), page(high(t, path))) },
		"a text file":               func(t *testing.T, path string) { os.WriteFile(path, []byte(strings.Repeat("text ", 9000)), 0) },
		"its second half zeroed":    func(t *testing.T, path string) { zero(t, path, page(high(t, path)/2), page(high(t, path))) },
		"every page's id off by 1":  func(t *testing.T, path string) { eachPage(t, path, func(p []byte) { p[0]++ }) },
		"every page's kind changed": func(t *testing.T, path string) { eachPage(t, path, func(p []byte) { p[8] ^= 3 }) },
		"every page's count huge":   func(t *testing.T, path string) { eachPage(t, path, func(p []byte) { p[10], p[11] = 0xfe, 0xff }) },
		"every page overflowing":    func(t *testing.T, path string) { eachPage(t, path, func(p []byte) { p[13] = 0xff }) },
		"every first key outside":   func(t *testing.T, path string) { eachPage(t, path, func(p []byte) { p[16+4+3], p[16+3] = 0x7f, 0x7f }) },
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "raft.db")
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			spoil(t, path)
			err := CheckBolt(path)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Fatal(err)
			}
		})
	}
	if err := CheckBolt(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

func truncate(t testing.TB, path string, n int64) {
	t.Helper()
	if err := os.Truncate(path, n); err != nil {
		t.Fatal(err)
	}
}

func eachPage(t testing.TB, path string, change func(page []byte)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * 4096; at+4096 <= len(b); at += 4096 {
		change(b[at : at+4096])
	}
	if err := os.WriteFile(path, b, 0); err != nil {
		t.Fatal(err)
	}
}

func TestAFreeListThatNamesPagesInUse(t *testing.T) {
	path := boltFile(t, &bolt.Options{PageSize: 4096})
	spoilt := false
	eachPage(t, path, func(p []byte) {
		if p[8] == boltFreelist && binary.NativeEndian.Uint16(p[10:]) > 0 {
			binary.NativeEndian.PutUint64(p[16:], 1)
			spoilt = true
		}
	})
	if !spoilt {
		t.Fatal("no free list in the file")
	}
	if err := CheckBolt(path); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
}

// Whatever the bytes are, CheckBolt returns; and what it lets pass, bbolt opens and walks without ending the process.
func FuzzCheckBolt(f *testing.F) {
	path := filepath.Join(f.TempDir(), "small.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 1024, NoFreelistSync: true})
	if err != nil {
		f.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{"records", "meta"} {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			for i := range 30 {
				if err := b.Put([]byte{byte(i)}, make([]byte, len(name)*i)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	whole = whole[:1024*16]
	f.Add(uint16(0), uint64(0), uint16(0), uint64(0))
	f.Add(uint16(2048+8), uint64(1), uint16(3072+12), uint64(1)<<40)
	f.Fuzz(func(t *testing.T, at1 uint16, x1 uint64, at2 uint16, x2 uint64) {
		b := append([]byte(nil), whole...)
		for _, c := range []struct {
			at uint16
			x  uint64
		}{{at1, x1}, {at2, x2}} {
			if at := int(c.at) % (len(b) - 8); at >= 2048 { // the meta pages have a checksum
				binary.LittleEndian.PutUint64(b[at:], binary.LittleEndian.Uint64(b[at:])^c.x)
			}
		}
		path := filepath.Join(t.TempDir(), "f.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if CheckBolt(path) != nil {
			return
		}
		db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, PreLoadFreelist: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = db.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
				return b.ForEach(func(k, v []byte) error { return nil })
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
