package snapshot

import (
	bolt "go.etcd.io/bbolt"
)

// filler writes the records of a new file, in name order and in transactions that are not synced one by one.
type filler struct {
	s     *Store
	path  string
	db    *bolt.DB
	m     *fileMeta // its tally grows with the records
	point string    // failpoint after each transaction

	batch    []entry
	held     []byte // what the batch's slices are cut from
	unsynced int
}

// buildSteps are the steps in which a new file is built: a transaction, which is not synced, has at most so many records or about so
// many bytes of them, and the file is synced whenever about so many bytes have been written. What is left for the end is then small,
// and a disk that gets on shows it.
type buildSteps struct{ records, bytes, synced int }

// put adds a record, of which it keeps nothing: its name, and its value as appendValue makes it.
func (w *filler) put(name, value []byte, crc uint32) error {
	w.m.add(crc)
	var e entry
	e.name, w.held = keep(w.held, name)
	e.raw, w.held = keep(w.held, value)
	w.batch = append(w.batch, e)
	if steps := w.s.build; len(w.batch) < steps.records && len(w.held) < steps.bytes {
		return nil
	}
	return w.flush()
}

// flush writes what was added.
func (w *filler) flush() error {
	_, err := update(w.path, w.db, func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketRecords)
		b.FillPercent = 0.9 // the names come in order
		for i := range w.batch {
			if err := b.Put(w.batch[i].name, w.batch[i].raw); err != nil {
				return err
			}
		}
		return nil
	})
	w.unsynced += len(w.held)
	w.batch, w.held = w.batch[:0], w.held[:0]
	Failpoint(w.point + ".batch")
	if err == nil && w.unsynced >= w.s.build.synced {
		w.unsynced = 0
		w.s.moved()
		err = w.s.disk.sync(w.db)
	}
	w.s.moved()
	return err
}

// keep appends b to held and returns its copy there.
func keep(held, b []byte) (kept, grown []byte) {
	n := len(held)
	held = append(held, b...)
	return held[n:len(held):len(held)], held
}
