//go:build failpoint

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// walPoints are where the first write to a wal may be killed.
var walPoints = []string{"wal.cleared", "wal.sealed", "wal.made", "wal.named"}

// writeToWal is the child: it opens the log in dir and writes.
func writeToWal(dir string) error {
	w, err := openWal(filepath.Join(dir, walName), false)
	if err != nil {
		return err
	}
	w.size = 1 << 16
	return errors.Join(w.Set([]byte("key"), sealValue([]byte("key"), []byte("value"))), w.Close())
}

// A start that is killed while it begins a new segment, behind a write that was
// interrupted, leaves a log that another start goes on with.
func TestACrashOfTheFirstWriteToAWal(t *testing.T) {
	for _, point := range walPoints {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			s, w := smallWal(t, dir)
			w.size = 1 << 16
			mustStore(t, s, entries(1, 20))
			path := segmentsOf(t, dir)[0]
			mustStore(t, s, entries(21, 35)) // some sectors
			w.Close()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			clear(b[(written(b)/sector)*sector:])
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv(crashTo, "open")
			for range 2 {
				crashAt(t, point, dir, "", "")
				if err := readWal(dir, 20); err != nil {
					t.Fatal(err)
				}
				if point != "wal.made" {
					break // it is past this point now
				}
			}
			for next := uint64(21); next < 100; next += 20 {
				s, w := smallWal(t, dir)
				w.size = 1 << 16
				mustStore(t, s, entries(next, next+19))
				w.Close()
				if err := readWal(dir, next+19); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
