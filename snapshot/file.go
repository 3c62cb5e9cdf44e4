package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

const (
	fileName = "snapshot.db"
	newName  = "snapshot.new" // being built; whatever has this name at start is what a crash left
	lockName = "snapshot.lock"

	lockWait = time.Second
)

var (
	bucketRecords = []byte("records") // name -> value
	bucketMeta    = []byte("meta")    // keyMeta -> fileMeta
	bucketLocal   = []byte("local")   // keyReceipt -> Receipt, keyNote -> the note; never in a stream
	keyMeta       = []byte("meta")
	keyReceipt    = []byte("receipt")
	keyNote       = []byte("note")
)

// disk is what the store asks of the operating system to make a file last. Tests replace it to see the order, and to fail.
type disk struct {
	sync    func(path string, f syncer) error
	rename  func(from, to string) error
	syncDir func(dir string) error
}

// syncer is an open file, by itself or of bolt.
type syncer interface{ Sync() error }

var realDisk = disk{sync: func(_ string, f syncer) error { return f.Sync() }, rename: os.Rename, syncDir: syncDir}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// lockDir takes the lock of a data directory, which outlives every file that is renamed in it. Closing the file gives it back.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, fmt.Errorf("open %s: %w (lock %s): stop that process or use another data directory", filepath.Join(dir, fileName), err, path)
}

// openBolt opens a bbolt file that CheckBolt has passed, or creates one. mmap is the address space to set aside: a file that outgrows
// it makes writers wait for readers.
func openBolt(path string, mmap int64) (db *bolt.DB, err error) {
	if mmap == 0 {
		mmap = 64 << 30
	}
	err = guarded(path, func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout:         lockWait,
			FreelistType:    bolt.FreelistMapType,
			NoFreelistSync:  true,
			InitialMmapSize: int(mmap),
		})
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("open %s: %w: stop that process or use another data directory", path, ErrLocked)
	case errors.Is(err, ErrDamaged):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// createBolt makes a bbolt file without records, which is written without syncs until settle.
func createBolt(path string, mmap int64) (*bolt.DB, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	db, err := openBolt(path, mmap)
	if err != nil {
		return nil, err
	}
	db.NoSync, db.NoGrowSync = true, true
	_, err = update(path, db, func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketRecords, bucketMeta, bucketLocal} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyMeta, appendMeta(nil, fileMeta{}))
	})
	if err != nil {
		discard(db, path)
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return db, nil
}

// settle makes what was written since createBolt durable, and every later transaction of db synced.
func settle(d disk, db *bolt.DB) error {
	if err := d.sync(db.Path(), db); err != nil {
		return fmt.Errorf("sync %s: %w", db.Path(), err)
	}
	db.NoSync, db.NoGrowSync = false, false
	return nil
}

// adopt moves the settled file from over fileName, in the directory dir. After the rename the directory shows the new file even if the error is
// not nil; it may not have reached the disk then.
func adopt(d disk, dir, from, point string) (renamed bool, err error) {
	if err := d.rename(from, filepath.Join(dir, fileName)); err != nil {
		return false, err
	}
	Failpoint(point + ".renamed")
	if err := d.syncDir(dir); err != nil {
		return true, fmt.Errorf("sync directory %s: %w", dir, err)
	}
	Failpoint(point + ".dirsynced")
	return true, nil
}

func discard(db *bolt.DB, path string) {
	_ = db.Close()
	_ = os.Remove(path)
}

// update runs fn in a write transaction of the file at path and commits it. Unlike bolt's own, it survives a panic of bolt on a damaged
// page without a lock left behind, and without the scan of the whole file that bolt would start in a goroutine of its own. If it fails
// with sure, the file is certainly as it was, a full disk for example; else nobody knows what the disk has, or the disk is not to be
// trusted any more.
func update(path string, db *bolt.DB, fn func(*bolt.Tx) error) (sure bool, err error) {
	tx, err := db.Begin(true)
	if err != nil {
		return true, err
	}
	id := tx.ID()
	err = guarded(path, func() error {
		defer tx.Rollback() // after Commit: nothing
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err == nil {
		return true, nil
	}
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		err = at.Err // the name under which bolt opened the file may be an old one
	}
	err = fmt.Errorf("write %s: %w", path, err)
	after, e := db.Begin(false) // does the file show a meta page of ours?
	if e != nil {
		return false, err
	}
	sure = after.ID() < id && !failedDisk(err)
	return sure, errors.Join(err, after.Rollback())
}

// failedDisk says that a write failed, and not for want of space.
func failedDisk(err error) bool {
	var no unix.Errno
	return errors.As(err, &no) && no != unix.ENOSPC && no != unix.EDQUOT
}
