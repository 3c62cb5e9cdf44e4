package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// builder writes a new file: its records, in name order. What a snapshot has beside them comes in bolt's own transaction, when the file
// is open.
type builder struct {
	s     *Store
	path  string
	m     *fileMeta // its tally grows with the records
	point string    // failpoint after each step

	f        *os.File
	tree     *tree
	last     []byte // the name that was put last
	at       int64  // where the next pages go
	unsynced int
}

// buildSteps are the steps in which a new file is built: pages are written when there are so many bytes of them, and the file is synced
// whenever about so many bytes have been written: little enough that an append to the log does not wait long behind them on the same disk.
// What is left for the end is then small, and a disk that gets on shows it. A page has so many bytes of records, and room for some more.
type buildSteps struct{ page, written, synced int }

func defaultSteps() buildSteps {
	return buildSteps{page: os.Getpagesize() * 9 / 10, written: 64 << 10, synced: 1 << 20}
}

// build begins a new file.
func (s *Store) build(path, point string, m *fileMeta) (*builder, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	m.tally = tally{}
	page := os.Getpagesize()
	return &builder{s: s, path: path, m: m, point: point, f: f, tree: newTree(page, s.steps.page), at: int64(2 * page)}, nil
}

// put adds a record, of which it keeps nothing: its name, and its value as appendValue makes it.
func (b *builder) put(name, value []byte, crc uint32) error {
	if bytes.Compare(name, b.last) <= 0 {
		return fmt.Errorf("%s is out of order", describe(name))
	}
	b.last = append(b.last[:0], name...)
	b.m.add(crc)
	b.tree.put(name, value)
	if len(b.tree.out) < b.s.steps.written {
		return nil
	}
	return b.write()
}

// write writes the pages that are made.
func (b *builder) write() error {
	n, err := b.f.WriteAt(b.tree.out, b.at)
	b.at += int64(n)
	b.unsynced += n
	b.tree.out = b.tree.out[:0]
	Failpoint(b.point + ".batch")
	if err == nil && b.unsynced >= b.s.steps.synced {
		b.unsynced = 0
		b.s.moved()
		err = b.s.disk.sync(b.path, b.f)
	}
	b.s.moved()
	return err
}

// end writes the pages that are left.
func (b *builder) end() error {
	metas := b.tree.end()
	err := b.write()
	if err == nil {
		_, err = b.f.WriteAt(metas, 0)
	}
	return err
}

// sync syncs what was not yet.
func (b *builder) sync() error {
	err := b.s.disk.sync(b.path, b.f)
	b.s.moved()
	return err
}

// open opens the file, which is written and synced. Its transactions are not synced until settle.
func (b *builder) open() (*bolt.DB, error) {
	db, err := openBolt(b.path, b.s.mmap)
	if err == nil {
		db.NoSync, db.NoGrowSync = true, true
		b.close()
	}
	return db, err
}

func (b *builder) close() {
	_ = b.f.Close()
}

// discard removes the file, open as db unless that is nil.
func (b *builder) discard(db *bolt.DB) {
	if db != nil {
		_ = db.Close()
	}
	b.close()
	_ = os.Remove(b.path)
}
