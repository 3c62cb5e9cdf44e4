package snapshot

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// recordWriter brings the records of a file up to date within one transaction, and the tally of its meta data with them.
type recordWriter struct {
	path  string // for errors
	b     *bolt.Bucket
	m     *fileMeta
	chunk []byte // bolt keeps the values until the commit, and copies the names
}

// put writes or removes what r says; see Sink.Commit.
func (w *recordWriter) put(r *Record) error {
	if r.Deleted && len(r.Name) <= 1 {
		return w.clear(r.Name)
	}
	if err := checkRecord(r.Name, r.State); err != nil {
		return err
	}
	alive := !r.Deleted && r.Expiry > w.m.T
	if err := w.forget(r.Name, !alive); err != nil {
		return err
	}
	if !alive {
		return nil
	}
	if n := valueLen(r.State, r.Expiry); n > cap(w.chunk)-len(w.chunk) {
		w.chunk = make([]byte, 0, max(n, 256<<10))
	}
	start := len(w.chunk)
	var crc uint32
	w.chunk, crc = appendValue(w.chunk, r.Name, r.State, r.Expiry)
	w.m.add(crc)
	return w.b.Put(r.Name, w.chunk[start:len(w.chunk):len(w.chunk)])
}

// forget takes the record of that name, if there is one, out of the tally, and out of the file too if it is not written over. A damaged
// one is not written over: the tally would go wrong, and the damage would go unnoticed.
func (w *recordWriter) forget(name []byte, remove bool) error {
	old := w.b.Get(name)
	if old == nil {
		return nil
	}
	x, ok := decodeValue(name, old)
	if !ok {
		return damagedRecord(w.path, name)
	}
	w.m.sub(x.crc)
	if remove {
		return w.b.Delete(name)
	}
	return nil
}

// clear removes every record whose name has the prefix.
func (w *recordWriter) clear(prefix []byte) error {
	for {
		// A cursor does not survive a deletion, so the names are collected first, a bounded number at a time.
		var names [][]byte
		c := w.b.Cursor()
		for name, _ := c.Seek(prefix); name != nil && bytes.HasPrefix(name, prefix) && len(names) < 10000; name, _ = c.Next() {
			names = append(names, bytes.Clone(name))
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := w.forget(name, true); err != nil {
				return err
			}
		}
	}
}

// checkRecord refuses what a stream could not carry.
func checkRecord(name, state []byte) error {
	if _, _, _, err := SplitName(name); err != nil {
		return err
	}
	if len(state) > MaxState {
		return fmt.Errorf("state of %s has %d bytes, at most %d", describe(name), len(state), MaxState)
	}
	return nil
}

// describe names a record for people: its namespace and key.
func describe(name []byte) string {
	ns, key, ident, err := SplitName(name)
	if err != nil {
		return fmt.Sprintf("record %.64x", name)
	}
	return fmt.Sprintf("namespace %d key %.256q record %x", ns, key, ident)
}

func damagedRecord(path string, name []byte) error {
	return damaged(path, "checksum of %s", describe(name))
}
