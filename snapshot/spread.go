package snapshot

import (
	"bytes"
	"os"

	bolt "go.etcd.io/bbolt"
)

const (
	// transactionPages are the pages that the transaction of a local snapshot may touch: bolt takes about 9 KiB of memory for each, until
	// the commit.
	transactionPages = 24 << 10
	// transactionRecords are so few that one transaction is always good enough.
	transactionRecords = 1 << 10

	spreadSamples = 256 // places of the file that are looked at
)

// large says whether records, in name order, are to go into a new file: if others did already, if one transaction would touch too many
// pages, or if it would take longer. A transaction takes about 2 µs for each record and 30 µs for each page that it touches, a new
// file 0.3 µs for each record that was there and 0.5 for each that goes into it (BenchmarkWays).
func (k *Sink) large(records []Record) (bool, error) {
	if k.runs != nil || len(records) <= min(k.s.pages, transactionRecords) {
		return k.runs != nil, nil
	}
	for i := range records[1:] {
		if bytes.Compare(records[i].Name, records[i+1].Name) >= 0 {
			return false, nil // a run must be in order
		}
	}
	pages, there, err := k.s.touches(records)
	return pages > k.s.pages || 100*pages+5*len(records) > there, err
}

// touches is about how many pages of the records in the file a transaction changes with these. A page that is new is not counted: it
// takes no more memory than its records. there is how many records the file has.
func (s *Store) touches(records []Record) (pages, there int, err error) {
	f, err := s.ref()
	if err != nil {
		return 0, 0, err
	}
	defer s.unref(f)
	page := os.Getpagesize()
	looked, between := 0, 0
	err = guarded(s.Path(), func() error {
		return f.db.View(func(tx *bolt.Tx) error {
			m, err := readMeta(s.Path(), tx)
			if err != nil {
				return err
			}
			there = int(m.records)
			c := tx.Bucket(bucketRecords).Cursor()
			for i := 0; i+1 < len(records); i += max(1, len(records)/spreadSamples) {
				n := 0
				for name, v := c.Seek(records[i].Name); n < page && name != nil && bytes.Compare(name, records[i+1].Name) < 0; name, v = c.Next() {
					n += boltElement + len(name) + len(v)
				}
				between += min(n, page)
				looked++
			}
			return nil
		})
	})
	return len(records) * between / (max(1, looked) * page), there, err
}
