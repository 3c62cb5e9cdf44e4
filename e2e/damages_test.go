package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// The files of a node. The log and the stable store (terms, votes) lie in raft.wal, meta.db
// and the segments; or, with the other log store, are two buckets of raft.db.
const (
	walDir       = "raft.wal"
	logFile      = "raft.db"
	snapshotFile = "snapshot.db"
	identity     = "identity"
)

// files are the contents of a stopped node's files, by their paths in its directory;
// one that is not there is missing.
type files map[string][]byte

// pathsOf are the paths of the files that are there, by those in dir.
func pathsOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	paths := map[string]string{}
	for _, pattern := range []string{logFile, filepath.Join(walDir, "*.*"), snapshotFile, identity} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			paths[strings.TrimPrefix(path, dir+"/")] = path
		}
	}
	return paths
}

func readFiles(t testing.TB, dir string) files {
	t.Helper()
	fs := files{}
	for name, path := range pathsOf(t, dir) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fs[name] = b
	}
	return fs
}

// in are those in a folder.
func (fs files) in(folder string) files {
	some := maps.Clone(fs)
	maps.DeleteFunc(some, func(name string, _ []byte) bool { return filepath.Dir(name) != folder })
	return some
}

// write makes the files what they were.
func (fs files) write(t testing.TB, dir string) {
	t.Helper()
	for name, path := range pathsOf(t, dir) {
		if _, ok := fs[name]; ok {
			continue
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range fs {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// damage is a way in which a file comes back wrong.
type damage struct {
	file, name string
	// of returns what becomes of the file, nil: it is missing. old is what the file
	// was before the node was started the last time. Without of, file is a folder, and
	// all that is in it is old.
	of      func(now, old []byte) []byte
	refused bool // it cannot be mended here, so the node must refuse
}

func (d damage) String() string { return d.file + ": " + d.name }

// on damages the file in dir.
func (d damage) on(t testing.TB, dir string, old files) {
	t.Helper()
	fs := readFiles(t, dir)
	if d.of == nil {
		maps.DeleteFunc(fs, func(name string, _ []byte) bool { return filepath.Dir(name) == d.file })
		maps.Copy(fs, old.in(d.file))
	} else {
		name := fs.named(d.file)
		if b := d.of(fs[name], old[name]); b == nil {
			delete(fs, name)
		} else {
			fs[name] = b
		}
	}
	fs.write(t, dir)
}

// damages are all kinds on all files of a node with bolt; those at a chosen place are made n times.
func damages(t testing.TB, n int) []damage {
	var all []damage
	for _, file := range []string{logFile, snapshotFile, identity} {
		log := file == logFile
		all = append(all,
			damage{file, "missing", func(_, _ []byte) []byte { return nil }, log},
			damage{file, "empty", func(_, _ []byte) []byte { return []byte{} }, log},
			damage{file, "cut in the middle", func(now, _ []byte) []byte { return now[:used(now)/2] }, log},
			damage{file, "an old copy", func(_, old []byte) []byte { return old }, log},
		)
		for i := range n {
			all = append(all, damage{file, fmt.Sprintf("a flipped bit, %d", i), flipBit(rand.New(rand.NewPCG(1, uint64(i)))), false})
		}
		if file == identity {
			continue
		}
		all = append(all,
			damage{file, "first page zero", func(now, _ []byte) []byte { return zeroed(now, 0) }, log},
			damage{file, "both meta pages zero", func(now, _ []byte) []byte { return zeroed(zeroed(now, 0), 1) }, log},
			damage{file, "cut in a page", func(now, _ []byte) []byte { return now[:used(now)-pageSize/2] }, false},
		)
	}
	for _, bucket := range []struct {
		file, name string
		refused    bool
	}{{logFile, "logs", true}, {logFile, "conf", true}, {snapshotFile, "records", false}} {
		for i := range n {
			rng := rand.New(rand.NewPCG(2, uint64(i)))
			all = append(all,
				damage{bucket.file, fmt.Sprintf("a page of %s zero, %d", bucket.name, i), func(now, _ []byte) []byte {
					pages := pagesOf(t, now, bucket.name)
					return zeroed(now, pages[rng.IntN(len(pages))])
				}, bucket.refused},
				damage{bucket.file, fmt.Sprintf("a flipped bit in %s, %d", bucket.name, i), func(now, _ []byte) []byte {
					pages := pagesOf(t, now, bucket.name)
					at := pages[rng.IntN(len(pages))] * pageSize
					return append(append(bytes.Clone(now[:at]), flipBit(rng)(now[at:at+pageSize], nil)...), now[at+pageSize:]...)
				}, false})
		}
		all = append(all, damage{bucket.file, "pages of " + bucket.name + " as they were", func(now, old []byte) []byte {
			aged := bytes.Clone(now)
			for _, p := range pagesOf(t, now, bucket.name) {
				if at := p * pageSize; at+pageSize <= len(old) {
					copy(aged[at:at+pageSize], old[at:])
				}
			}
			return aged
		}, false})
	}
	return append(all,
		damage{logFile, "the log without its end, whole otherwise", func(now, old []byte) []byte {
			end := lastKey(t, old, "logs")
			return edited(t, now, func(tx *bolt.Tx) error {
				c := tx.Bucket([]byte("logs")).Cursor()
				for k, _ := c.Last(); bytes.Compare(k, end) > 0; k, _ = c.Last() {
					if err := c.Delete(); err != nil {
						return err
					}
				}
				return nil
			})
		}, true},
		damage{logFile, "the stable store of an old copy, whole otherwise", func(now, old []byte) []byte {
			values := map[string][]byte{}
			view(t, old, func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("conf")).ForEach(func(k, v []byte) error {
					values[string(k)] = bytes.Clone(v)
					return nil
				})
			})
			return edited(t, now, func(tx *bolt.Tx) error {
				for k, v := range values {
					if err := tx.Bucket([]byte("conf")).Put([]byte(k), v); err != nil {
						return err
					}
				}
				return nil
			})
		}, true},
	)
}

const pageSize = 4096

// used is the length of a file without the zeros that it grew ahead.
func used(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

func zeroed(b []byte, page int) []byte {
	out := bytes.Clone(b)
	clear(out[page*pageSize : (page+1)*pageSize])
	return out
}

// flipBit flips a bit of a byte that is not zero: zeros have nothing to lose.
func flipBit(rng *rand.Rand) func(now, _ []byte) []byte {
	return func(now, _ []byte) []byte {
		out := bytes.Clone(now)
		for {
			if at := rng.IntN(used(now)); out[at] != 0 {
				out[at] ^= 1 << rng.IntN(8)
				return out
			}
		}
	}
}

// pagesOf are the pages of a bucket of a bbolt file. A small bucket is within the page
// that names it.
func pagesOf(t testing.TB, b []byte, bucket string) (pages []int) {
	ne := binary.NativeEndian
	meta := b[:pageSize]
	if other := b[pageSize:]; ne.Uint64(other[64:]) > ne.Uint64(meta[64:]) { // the newer transaction
		meta = other
	}
	root, small := ne.Uint64(meta[32:]), true
	view(t, b, func(tx *bolt.Tx) error {
		if r := tx.Bucket([]byte(bucket)).Root(); r != 0 {
			root, small = uint64(r), false
		}
		return nil
	})
	var walk func(page uint64)
	walk = func(page uint64) {
		p := b[page*pageSize:]
		for i := range int(ne.Uint32(p[12:])) + 1 { // and those that it overflows into
			pages = append(pages, int(page)+i)
		}
		if ne.Uint16(p[8:]) == 1 && !small { // a branch
			for i := range int(ne.Uint16(p[10:])) {
				walk(ne.Uint64(p[16+16*i+8:]))
			}
		}
	}
	walk(root)
	return pages
}

func lastKey(t testing.TB, b []byte, bucket string) (key []byte) {
	view(t, b, func(tx *bolt.Tx) error {
		k, _ := tx.Bucket([]byte(bucket)).Cursor().Last()
		key = bytes.Clone(k)
		return nil
	})
	return key
}

func view(t testing.TB, b []byte, f func(*bolt.Tx) error) {
	edited(t, b, func(tx *bolt.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return nil
	})
}

// edited is a bbolt file after a transaction.
func edited(t testing.TB, b []byte, f func(*bolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edited.db")
	err := os.WriteFile(path, b, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return b
}
