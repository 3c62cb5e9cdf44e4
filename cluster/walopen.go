package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"limitd/snapshot"
)

// open gives the directory to raft-wal, once.
//
// Every start begins a new segment. So a copy from before it never is what the newest
// segment should be; what an interrupted write left is cut off; and a segment that
// was sealed by a process that ended before it could say so is no obstacle (raft-wal
// appends no more to it, and takes it for the newest one).
func (w *walLog) open() (*wal.WAL, error) {
	if l := w.wal.Load(); l != nil {
		return l, nil
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if l := w.wal.Load(); l != nil {
		return l, nil
	}
	w.spare.size = int64(w.size)
	if err := os.Remove(filepath.Join(w.dir, walSpareName)); err != nil && !errors.Is(err, os.ErrNotExist) { // of an earlier process
		return nil, err
	}
	if err := w.meta.removeUnnamed(); err != nil {
		return nil, err
	}
	if err := w.sealTail(); err != nil {
		return nil, err
	}
	l, err := wal.Open(w.dir,
		wal.WithCodec(walCodec{}), wal.WithMetaStore(w.meta), wal.WithSegmentFiler(walFiler{segment.NewFiler(w.dir, walFiles{w.failed, &w.deletes, &w.spare}), w.meta}),
		wal.WithSegmentSize(w.size), wal.WithLogger(hclog.NewNullLogger()))
	if err != nil {
		return nil, err
	}
	first, last := w.bounds()
	haveFirst, err1 := l.FirstIndex()
	haveLast, err2 := l.LastIndex()
	if err := errors.Join(err1, err2, w.failure()); err != nil || first != haveFirst || last != haveLast {
		return nil, errors.Join(err, fmt.Errorf("%s was read as entries %d to %d, and raft-wal found %d to %d", w.dir, first, last, haveFirst, haveLast), l.Close())
	}
	w.wal.Store(l)
	w.closeSegments()
	return l, nil
}

// sealTail seals the newest segment, if it holds entries, and names the next one.
func (w *walLog) sealTail() error {
	if len(w.segments) == 0 {
		return nil
	}
	tail := w.segments[len(w.segments)-1]
	f, err := os.OpenFile(tail.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	file := walFile{File: f}
	defer file.Close()
	if tail.rest > tail.end {
		if err := file.clear(tail.end, tail.rest); err != nil {
			return err
		}
		tail.rest = 0
		snapshot.Failpoint("wal.cleared")
	}
	if len(tail.offsets) == 0 {
		return nil
	}
	if tail.index == 0 {
		seal := tail.appendSeal(nil)
		if _, err := file.WriteAt(seal, tail.end); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		tail.index = uint64(tail.end) + walFrame
		tail.end += int64(len(seal))
		snapshot.Failpoint("wal.sealed")
	}
	st, err := w.meta.Load(w.dir)
	if err != nil {
		return err
	}
	sealed := &st.Segments[len(st.Segments)-1]
	sealed.SealTime, sealed.IndexStart = time.Now(), tail.index
	sealed.MaxIndex = tail.BaseIndex + uint64(len(tail.offsets)) - 1
	st.Segments = append(st.Segments, types.SegmentInfo{
		ID: st.NextSegmentID, BaseIndex: sealed.MaxIndex + 1, MinIndex: sealed.MaxIndex + 1,
		Codec: walCodecID, CreateTime: time.Now(), SizeLimit: uint32(w.size),
	})
	st.NextSegmentID++
	if err := w.meta.CommitState(st); err != nil {
		return err
	}
	snapshot.Failpoint("wal.named")
	return file.Truncate(tail.end) // a segment that is sealed early gives back the rest
}

// clear writes zeros.
func (f walFile) clear(from, to int64) error {
	if _, err := f.WriteAt(make([]byte, to-from), from); err != nil {
		return err
	}
	return f.Sync()
}
