package snapshot

import (
	bolt "go.etcd.io/bbolt"
)

// walk goes through the records of a file in name order and checks each. It is as long valid as the transaction of its cursor.
type walk struct {
	path   string
	moved  func()
	cursor *bolt.Cursor
	name   []byte // where the cursor stands: the first record not yet ahead, nil at the end
	value  []byte
	ahead  []entry // records read and checked, not yet given
	room   [128]entry
}

// entry is a checked record of the file.
type entry struct {
	name []byte
	value
	raw []byte // the value as the file has it
}

// next returns the next record, checked; one without a name at the end.
func (w *walk) next() (e entry, err error) {
	if len(w.ahead) == 0 && w.name != nil {
		if err := w.fetch(); err != nil {
			return e, err
		}
	}
	if len(w.ahead) > 0 {
		e, w.ahead = w.ahead[0], w.ahead[1:]
	}
	return e, nil
}

// fetch reads and checks some records from the cursor on.
func (w *walk) fetch() error {
	w.moved()
	return guarded(w.path, func() error {
		w.ahead = w.room[:0]
		for w.name != nil && len(w.ahead) < len(w.room) {
			x, ok := decodeValue(w.name, w.value)
			if !ok {
				return damagedRecord(w.path, w.name)
			}
			w.ahead = append(w.ahead, entry{w.name, x, w.value})
			w.name, w.value = w.cursor.Next()
		}
		return nil
	})
}
