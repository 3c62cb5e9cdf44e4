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

	spreadSamples = 256 // places of the file that are looked at
)

// large says whether records, in name order, are to go into a new file: if others did already, or if one transaction would touch too many
// pages.
func (k *Sink) large(records []Record) (bool, error) {
	if k.runs != nil || len(records) <= k.s.pages {
		return k.runs != nil, nil
	}
	for i := range records[1:] {
		if bytes.Compare(records[i].Name, records[i+1].Name) >= 0 {
			return false, nil // a run must be in order
		}
	}
	pages, err := k.s.touches(records)
	return pages > k.s.pages, err
}

// touches is about how many pages of the records in the file a transaction changes with these. A page that is new is not counted: it
// takes no more memory than its records.
func (s *Store) touches(records []Record) (pages int, err error) {
	f, err := s.ref()
	if err != nil {
		return 0, err
	}
	defer s.unref(f)
	page := os.Getpagesize()
	looked, between := 0, 0
	err = guarded(s.Path(), func() error {
		return f.db.View(func(tx *bolt.Tx) error {
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
	return len(records) * between / (max(1, looked) * page), err
}
