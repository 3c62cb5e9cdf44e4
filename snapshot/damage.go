package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// What callers branch on. Every error that leaves the package names the file it is about.
var (
	ErrDamaged    = errors.New("damaged")                        // what was read is not what was written
	ErrVersion    = errors.New("unknown format version")         // written by another version of limitd; not damage
	ErrLocked     = errors.New("another process holds it")       // stop that process or use another data directory
	ErrSuperseded = errors.New("superseded by a newer snapshot") // Commit: the file is already past this index
	ErrStale      = errors.New("older than what this node has")  // install: refused before the rename
	ErrNoSnapshot = errors.New("no such snapshot")               // Open, SaveTo
	ErrClosed     = errors.New("closed")                         // the store or reader was closed
	ErrExpired    = errors.New("reader gave up its place")       // a reader that was idle or open for too long
)

func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%s is %w: %s", path, ErrDamaged, fmt.Sprintf(format, args...))
}

// guarded runs fn, which reads the mapped file, so that a page that cannot be read and a page that makes no sense to bbolt, which
// panics on it, become ErrDamaged instead of ending the process.
func guarded(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged(path, "%v", p)
		}
	}()
	return fn()
}

// SetAside renames the snapshot file of a data directory to snapshot.db.damaged-<n>, the first n that is free, and returns the new
// path. It is for a file that OpenStore calls damaged, when the log alone can rebuild the state.
func SetAside(dir string) (string, error) {
	lock, err := lockDir(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	path := filepath.Join(dir, fileName)
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.damaged-%d", path, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("set aside %s: %w", path, err)
		}
		if err := os.Rename(path, aside); err != nil {
			return "", fmt.Errorf("set aside %s: %w", path, err)
		}
		return aside, syncDir(dir)
	}
}
