package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
)

const (
	walName     = "raft.wal" // a directory
	walMetaName = "meta.db"  // in it
	segmentSize = 16 << 20
	walCodecID  = wal.FirstExternalCodecID + rowVersion
)

// walLog is the directory raft.wal: the log in segments, which raft-wal writes, and
// what names them in a file beside, which holds the stable store too.
//
// It is read without raft-wal until the first write. Nothing is changed on disk before
// that, so that a node that refuses to start leaves everything as it is.
type walLog struct {
	dir  string
	meta *walMeta
	size int // of a segment

	segments []*walSegment // before the first write

	writing sync.Mutex // taken by the first write
	wal     atomic.Pointer[wal.WAL]
	broken  atomic.Pointer[error]
	deletes walDeletes
	spare   walSpare

	reading sync.RWMutex // against closing
	closed  bool
}

var _ logFile = (*walLog)(nil)

// createWal makes the directory without entries.
func createWal(dir string) error {
	path, next := filepath.Join(dir, walName), filepath.Join(dir, walName+".new")
	err := os.RemoveAll(next)
	if err == nil {
		err = os.Mkdir(next, 0o700)
	}
	if err == nil {
		err = createBoltFile(next, walMetaName)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("create raft log %s: %w", path, err)
	}
	return nil
}

// openWal opens the directory at path and checks that it is whole.
func openWal(path string, readOnly bool) (*walLog, error) {
	meta, err := openLogFile(filepath.Join(path, walMetaName), readOnly)
	if err != nil {
		return nil, err
	}
	w := &walLog{dir: path, size: segmentSize}
	w.spare.dir, w.spare.broken = path, w.failed
	w.meta = &walMeta{boltLog: meta, dir: path, failed: w.failed, deletes: &w.deletes, spare: &w.spare, made: map[uint64]uint32{}}
	if err := w.read(); err != nil {
		w.Close()
		return nil, damagedLog(path, err)
	}
	return w, nil
}

// failed notes the first failure of a write, some of which raft-wal would only log.
func (w *walLog) failed(err error) { w.broken.CompareAndSwap(nil, &err) }

func (w *walLog) failure() error {
	if p := w.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// read reads all segments.
func (w *walLog) read() error {
	st, err := w.meta.Load(w.dir)
	if err != nil {
		return fmt.Errorf("%s: %w", walMetaName, err)
	}
	if len(st.Segments) == 0 {
		name, err := w.meta.unnamed()
		if err == nil && name != "" {
			err = fmt.Errorf("%s holds entries, and %s names no segment", name, walMetaName)
		}
		return err
	}
	for i, info := range st.Segments {
		switch last := i == len(st.Segments)-1; {
		case info.Codec != walCodecID:
			return unknownRow("segment "+segment.FileName(info), byte(info.Codec))
		case info.SealTime.IsZero() != last:
			return fmt.Errorf("%s: segment %s is not the last, or the last one is sealed", walMetaName, segment.FileName(info))
		case i > 0 && info.BaseIndex != st.Segments[i-1].MaxIndex+1:
			return fmt.Errorf("%s: entries between %d and %d are missing", walMetaName, st.Segments[i-1].MaxIndex, info.BaseIndex)
		}
		s, err := openSegment(w.dir, info)
		if err != nil {
			return err
		}
		w.segments = append(w.segments, s)
	}
	return nil
}

// bounds are those of the segments that were read.
func (w *walLog) bounds() (first, last uint64) {
	n := len(w.segments)
	if n == 0 {
		return 0, 0
	}
	tail := w.segments[n-1]
	if n == 1 && len(tail.offsets) == 0 {
		return 0, 0
	}
	return w.segments[0].MinIndex, tail.BaseIndex + uint64(len(tail.offsets)) - 1
}

// FirstIndex is the index of the first entry, 0 if there is none.
func (w *walLog) FirstIndex() (first uint64, err error) {
	err = w.reads(func(l *wal.WAL) (err error) {
		if l == nil {
			first, _ = w.bounds()
			return nil
		}
		first, err = l.FirstIndex()
		return err
	})
	return first, err
}

// LastIndex is the index of the last entry, 0 if there is none.
func (w *walLog) LastIndex() (last uint64, err error) {
	err = w.reads(func(l *wal.WAL) (err error) {
		if l == nil {
			_, last = w.bounds()
			return nil
		}
		last, err = l.LastIndex()
		return err
	})
	return last, err
}

// reads runs f unless the log is closed.
func (w *walLog) reads(f func(*wal.WAL) error) error {
	w.reading.RLock()
	defer w.reading.RUnlock()
	if w.closed {
		return os.ErrClosed
	}
	return f(w.wal.Load())
}

// GetLog reads and checks an entry.
func (w *walLog) GetLog(index uint64, l *raft.Log) error {
	return w.reads(func(open *wal.WAL) (err error) {
		if open == nil {
			return w.readSegment(index, l)
		}
		// raft-wal still reads what was deleted from the newest segment.
		first, err1 := open.FirstIndex()
		last, err2 := open.LastIndex()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if index < first || index > last {
			return raft.ErrLogNotFound
		}
		// It takes its state and then says that it reads it. In between a truncation
		// may close a segment.
		for range 100 {
			*l = raft.Log{Index: index} // for the codec
			if err = open.GetLog(index, l); !errors.Is(err, os.ErrClosed) {
				break
			}
		}
		return err
	})
}

// readSegment is GetLog before the first write.
func (w *walLog) readSegment(index uint64, l *raft.Log) error {
	if first, last := w.bounds(); first == 0 || index < first || index > last {
		return raft.ErrLogNotFound
	}
	for _, s := range w.segments {
		if s.SealTime.IsZero() || index <= s.MaxIndex {
			return s.read(index, l)
		}
	}
	return raft.ErrLogNotFound
}

// StoreLog writes one entry.
func (w *walLog) StoreLog(l *raft.Log) error { return w.StoreLogs([]*raft.Log{l}) }

// StoreLogs writes entries and syncs them.
func (w *walLog) StoreLogs(logs []*raft.Log) error {
	return w.writes(func(l *wal.WAL) error { return l.StoreLogs(logs) })
}

// DeleteRange deletes the entries from lo to hi, at one end of the log, at once.
func (w *walLog) DeleteRange(lo, hi uint64) error {
	return w.writes(func(l *wal.WAL) error { return l.DeleteRange(lo, hi) })
}

func (w *walLog) writes(f func(*wal.WAL) error) error {
	l, err := w.open()
	if err != nil {
		return err
	}
	if err := w.failure(); err != nil {
		return err
	}
	if err := f(l); err != nil {
		return errors.Join(w.failure(), err)
	}
	return nil
}

// Get reads a value as it was set.
func (w *walLog) Get(key []byte) ([]byte, error) { return w.meta.Get(key) }

// Set writes a value in a synced transaction.
func (w *walLog) Set(key, value []byte) error {
	return w.writes(func(*wal.WAL) error { return w.meta.Set(key, value) })
}

// Close closes all files.
func (w *walLog) Close() error {
	w.reading.Lock()
	closed := w.closed
	w.closed = true
	w.reading.Unlock()
	if closed {
		return nil
	}
	defer w.deletes.all.Wait()
	defer w.spare.discard()
	if l := w.wal.Load(); l != nil {
		return l.Close() // and what names the segments
	}
	w.closeSegments()
	return w.meta.Close()
}

func (w *walLog) closeSegments() {
	for _, s := range w.segments {
		s.f.Close()
	}
	w.segments = nil
}

// walCodec writes the rows that a boltLog writes.
type walCodec struct{}

// ID implements wal.Codec.
func (walCodec) ID() uint64 { return walCodecID }

// Encode implements wal.Codec.
func (walCodec) Encode(l *raft.Log, w io.Writer) error {
	_, err := w.Write(appendRow(make([]byte, 0, rowFixed+len(l.Data)), l))
	return err
}

// Decode implements wal.Codec. The index is in the entry.
func (walCodec) Decode(row []byte, l *raft.Log) error { return decodeRow(l.Index, row, l) }
