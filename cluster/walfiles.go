package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"

	"limitd/mutant"
)

// walFiles are the files of the segments as raft-wal uses them. A failure of what it
// does in the background, and only logs, is told.
type walFiles struct {
	failed  func(error)
	deletes *walDeletes
	spare   *walSpare
}

// walDeletes are the removals of segments that go on beside the writes, one after the other: each takes some milliseconds,
// and raft-wal would have the next append wait for a dozen of them.
type walDeletes struct {
	all  sync.WaitGroup
	turn sync.Mutex
}

var _ types.VFS = walFiles{}

// ListDir implements types.VFS.
func (walFiles) ListDir(dir string) (names []string, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names, err
}

// Create implements types.VFS. The file is there: it was made before its name was
// written to the meta data.
func (v walFiles) Create(dir, name string, _ uint64) (types.WritableFile, error) {
	f, err := v.OpenWriter(dir, name)
	if err != nil {
		v.failed(err)
	}
	return f, err
}

// Delete implements types.VFS. The meta data does not name the segment any more: one
// that is there after a crash is nobody's, and goes at the next start.
func (v walFiles) Delete(dir, name string) error {
	v.deletes.all.Go(func() {
		v.deletes.turn.Lock()
		defer v.deletes.turn.Unlock()
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			v.failed(err)
		}
	})
	return nil
}

// OpenReader implements types.VFS.
func (walFiles) OpenReader(dir, name string) (types.ReadableFile, error) {
	return os.Open(filepath.Join(dir, name))
}

// OpenWriter implements types.VFS.
func (v walFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return walFile{f, v.spare}, nil
}

// walFiler makes segments with our codec: raft-wal notes its own for all, and then would
// not open them again. And it takes them as long as they were made.
type walFiler struct {
	*segment.Filer
	meta *walMeta
}

var _ types.SegmentFiler = walFiler{}

// Create implements types.SegmentFiler.
func (f walFiler) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	return f.Filer.Create(f.meta.asMade(info))
}

// walFile is a segment that is written.
type walFile struct {
	*os.File
	spare *walSpare // nil: none
}

// WriteAt implements types.WritableFile.
func (f walFile) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(b, at)
	if f.spare != nil {
		f.spare.appended(n)
	}
	return n, err
}

// Sync implements types.WritableFile: file and size have been synced when the file was
// made.
func (f walFile) Sync() error {
	if mutant.On("nosync") {
		return nil
	}
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return wrapSync(f.Name(), err)
		}
	}
}

func wrapSync(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sync %s: %w", path, err)
}
