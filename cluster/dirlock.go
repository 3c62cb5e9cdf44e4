package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockName is the file whose lock says that a process uses the data directory.
const lockName = "LOCK"

// lockDir takes the data directory for a node, unless an offline command on it was
// interrupted.
func lockDir(dir string) (*os.File, error) {
	f, err := lockAnyDir(dir)
	if err == nil {
		if err = refuseUnfinished(dir); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// lockAnyDir takes the data directory for this process, or says who has it. The
// lock ends with the file or the process.
func lockAnyDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
		}
		who := "another process"
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			who = "the process " + strings.TrimSpace(string(b))
		}
		return nil, fmt.Errorf("data directory %s is in use by %s: stop it, or give this node a directory of its own", dir, who)
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
		}
	}
	return f, nil
}
