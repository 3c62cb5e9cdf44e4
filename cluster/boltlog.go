package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"limitd/mutant"
)

// boltLog is the file raft.db: the log and the stable store, a bucket each of one
// bbolt file. It is written instead of used (raft-boltdb has the same two buckets)
// for one row: the tally of the log changes in the transaction that changes the log,
// so that a page that was lost, or is the one of an earlier transaction, shows when
// the file is opened, with checksums that are all right.
type boltLog struct {
	db *bbolt.DB

	mu    sync.Mutex // one write at a time
	tally logTally
}

var (
	bucketLogs   = []byte("logs") // index, 8 bytes big endian -> entry
	bucketStable = []byte("conf") // key -> sealed value
	tallyKey     = []byte("Tally")
)

// errNoValue is what raft expects of a stable store that has no such value: it
// compares the text.
var errNoValue = errors.New("not found")

// logTally is how the file knows which entries it holds: the last, how many, and the
// sum of their checksums; and which transaction wrote it.
type logTally struct{ last, entries, sum, txid uint64 }

func (t *logTally) add(row []byte) { t.entries++; t.sum += rowSum(row) }
func (t *logTally) sub(row []byte) { t.entries--; t.sum -= rowSum(row) }

func (t *logTally) encode() []byte {
	b := make([]byte, 0, 4*8)
	for _, n := range []uint64{t.last, t.entries, t.sum, t.txid} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodeTally(b []byte) (t logTally) {
	for _, n := range []*uint64{&t.last, &t.entries, &t.sum, &t.txid} {
		*n = number(b)
		b = b[min(len(b), 8):]
	}
	return t
}

func (t logTally) String() string {
	return fmt.Sprintf("%d entries up to %d with the sum %x in transaction %d", t.entries, t.last, t.sum, t.txid)
}

// update runs f in a synced transaction, with the tally to be changed.
func (b *boltLog) update(f func(*bbolt.Tx, *logTally) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.tally
	err := b.db.Update(func(tx *bbolt.Tx) error {
		next.txid = uint64(tx.ID())
		if err := f(tx, &next); err != nil {
			return err
		}
		if mutant.On("nosync") {
			b.db.NoSync = next.last > b.tally.last && next.txid%32 != 0
		}
		return tx.Bucket(bucketStable).Put(tallyKey, sealValue(tallyKey, next.encode()))
	})
	if err == nil {
		b.tally = next
	}
	return err
}

// initialize makes the buckets of a new file.
func (b *boltLog) initialize() error {
	return b.update(func(tx *bbolt.Tx, _ *logTally) error {
		_, err := tx.CreateBucket(bucketLogs)
		if err == nil {
			_, err = tx.CreateBucket(bucketStable)
		}
		return err
	})
}

// load takes over the tally and compares it with what the file holds.
func (b *boltLog) load() error {
	return b.db.View(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketLogs, bucketStable} {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("it has no bucket %q", name)
			}
		}
		sealed := tx.Bucket(bucketStable).Get(tallyKey)
		if sealed == nil {
			return errors.New("it has no tally of its entries")
		}
		v, err := openValue(tallyKey, sealed)
		if err != nil {
			return err
		}
		has := logTally{txid: uint64(tx.ID())}
		c := tx.Bucket(bucketLogs).Cursor()
		for k, row := c.First(); k != nil; k, row = c.Next() {
			has.add(row)
			has.last = number(k)
		}
		if b.tally = decodeTally(v); b.tally != has {
			return fmt.Errorf("a page of it was lost, or is an old one: %v are there, by its own tally %v", has, b.tally)
		}
		return nil
	})
}

func (b *boltLog) Close() error { return b.db.Close() }

// FirstIndex is the index of the first entry, 0 if there is none.
func (b *boltLog) FirstIndex() (uint64, error) {
	return b.bound((*bbolt.Cursor).First)
}

// LastIndex is the index of the last entry, 0 if there is none.
func (b *boltLog) LastIndex() (uint64, error) {
	return b.bound((*bbolt.Cursor).Last)
}

func (b *boltLog) bound(end func(*bbolt.Cursor) (key, row []byte)) (index uint64, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		k, _ := end(tx.Bucket(bucketLogs).Cursor())
		index = number(k)
		return nil
	})
	return index, err
}

// GetLog reads and checks an entry.
func (b *boltLog) GetLog(index uint64, l *raft.Log) error {
	return b.db.View(func(tx *bbolt.Tx) error {
		row := tx.Bucket(bucketLogs).Get(indexKey(index))
		if row == nil {
			return raft.ErrLogNotFound
		}
		return decodeRow(index, row, l)
	})
}

// StoreLog writes one entry.
func (b *boltLog) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

// StoreLogs writes entries in one synced transaction.
func (b *boltLog) StoreLogs(logs []*raft.Log) error {
	return b.update(func(tx *bbolt.Tx, t *logTally) error {
		bucket := tx.Bucket(bucketLogs)
		bucket.FillPercent = 1 // entries come in order
		for _, l := range logs {
			key := indexKey(l.Index)
			if l.Index <= t.last {
				if old := bucket.Get(key); old != nil {
					t.sub(old)
				}
			}
			row := appendRow(make([]byte, 0, rowFixed+len(l.Data)), l)
			if err := bucket.Put(key, row); err != nil {
				return err
			}
			t.add(row)
			t.last = max(t.last, l.Index)
		}
		return nil
	})
}

// DeleteRange deletes the entries from lo to hi in one synced transaction.
func (b *boltLog) DeleteRange(lo, hi uint64) error {
	return b.update(func(tx *bbolt.Tx, t *logTally) error {
		c := tx.Bucket(bucketLogs).Cursor()
		if k, _ := c.Seek(indexKey(lo)); k == nil || number(k) > hi {
			return nil
		}
		before, _ := c.Prev() // not Last at the end: it never returns when all pages have become empty
		k, row := c.Seek(indexKey(lo))
		for ; k != nil && number(k) <= hi; k, row = c.Next() {
			t.sub(row)
			if err := c.Delete(); err != nil {
				return err
			}
		}
		if k == nil {
			t.last = number(before)
		}
		return nil
	})
}

// Get reads a value as it was set.
func (b *boltLog) Get(key []byte) (v []byte, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketStable).Get(key)
		if value == nil {
			return errNoValue
		}
		v = append(v, value...)
		return nil
	})
	return v, err
}

// Set writes a value in a synced transaction.
func (b *boltLog) Set(key, value []byte) error {
	return b.update(func(tx *bbolt.Tx, _ *logTally) error {
		return tx.Bucket(bucketStable).Put(key, value)
	})
}

func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }
