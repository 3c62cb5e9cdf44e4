package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// FileName is the name of the snapshot file in a data directory.
const FileName = fileName

// OpenOffline opens the snapshot of a data directory that no process uses, to look into it: nothing is written, no lock, no file that
// is missing. The reader is the caller's to close. Without a snapshot the error wraps os.ErrNotExist or ErrNoSnapshot; others wrap
// ErrLocked, ErrDamaged or ErrVersion, or come from the system.
func OpenOffline(dir string) (*Reader, error) {
	s, err := openOffline(dir)
	if err != nil {
		return nil, err
	}
	r, err := s.open() // takes over the only reference, so the file is closed with it
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	return r, nil
}

// ReadNote returns the note in the file of a data directory that no process uses, empty if there is none. It writes nothing; errors are
// as of OpenOffline.
func ReadNote(dir string) ([]byte, error) {
	s, err := openOffline(dir)
	if err != nil {
		return nil, err
	}
	err = s.load()
	return s.Note(), errors.Join(err, s.cur.db.Close())
}

func openOffline(dir string) (*Store, error) {
	s := &Store{dir: dir, readers: map[*Reader]struct{}{}, readerIdle: time.Minute, readerLife: 30 * time.Minute}
	if err := CheckBolt(s.Path()); err != nil {
		return nil, err
	}
	var db *bolt.DB
	err := guarded(s.Path(), func() (err error) {
		db, err = bolt.Open(s.Path(), 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
		return err
	})
	if errors.Is(err, berrors.ErrTimeout) {
		err = ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Path(), err)
	}
	s.cur = &file{db: db}
	return s, nil
}

// CopyFile copies the snapshot file of the data directory from, which no process uses, into the directory to, and syncs the copy. It
// takes all that is in it, receipts too.
func CopyFile(from, to string) error {
	src, err := os.Open(filepath.Join(from, fileName))
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(filepath.Join(to, fileName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer dst.Close()
	if _, err = io.Copy(dst, src); err == nil {
		err = dst.Sync()
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", src.Name(), err)
	}
	return dst.Close()
}
