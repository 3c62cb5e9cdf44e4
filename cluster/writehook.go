package cluster

import "github.com/hashicorp/raft"

// WriteHook runs a write to the file of the log. It may wait before and after it, or
// return an error: the disk's. The file is not locked meanwhile.
type WriteHook func(write func() error) error

// around is the file with the hook around the writes that somebody waits for. Those
// of a truncation are left as they are: locks are held.
func (h WriteHook) around(f logFile) logFile {
	if h == nil {
		return f
	}
	return hookedFile{f, h}
}

type hookedFile struct {
	logFile
	hook WriteHook
}

// StoreLog implements raft.LogStore.
func (f hookedFile) StoreLog(l *raft.Log) error { return f.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (f hookedFile) StoreLogs(logs []*raft.Log) error {
	return f.hook(func() error { return f.logFile.StoreLogs(logs) })
}

// Set writes a value.
func (f hookedFile) Set(key, value []byte) error {
	if string(key) == incarnationKey {
		return f.logFile.Set(key, value)
	}
	return f.hook(func() error { return f.logFile.Set(key, value) })
}
