package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// scratch makes a directory for runs that nobody named one for: in memory if there is
// room, for syncs that wait for what else goes on at the machine's disk are no fault that
// a run has asked for.
func scratch(pattern string) (string, error) {
	const memory, room = "/dev/shm", 4 << 30
	var fs unix.Statfs_t
	if err := unix.Statfs(memory, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC && int64(fs.Bavail)*fs.Bsize > room {
		return os.MkdirTemp(memory, pattern)
	}
	return os.MkdirTemp("", pattern)
}
