package cluster

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"

	"limitd/snapshot"
)

// walMeta is the file that names the segments and holds the stable store: a boltLog
// without entries, so that both have checksums and a tally.
type walMeta struct {
	*boltLog
	dir     string
	failed  func(error)
	deletes *walDeletes
	spare   *walSpare
	made    map[uint64]uint32 // SizeLimit of the segments that were made since the start, by ID
}

var _ types.MetaStore = (*walMeta)(nil)

var segmentsKey = []byte("Segments")

// Load implements types.MetaStore.
func (m *walMeta) Load(string) (st types.PersistentState, err error) {
	sealed, err := m.Get(segmentsKey)
	if errors.Is(err, errNoValue) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	b, err := openValue(segmentsKey, sealed)
	if err == nil {
		err = json.Unmarshal(b, &st)
	}
	return st, err
}

// CommitState implements types.MetaStore. The file of a new segment is made before it
// is named.
func (m *walMeta) CommitState(st types.PersistentState) error {
	err := m.commit(st)
	if err != nil {
		m.failed(err)
	}
	return err
}

func (m *walMeta) commit(st types.PersistentState) error {
	if n := len(st.Segments); n > 0 && st.Segments[n-1].SealTime.IsZero() {
		tail := st.Segments[n-1]
		path := filepath.Join(m.dir, segment.FileName(tail))
		known, err := m.names(tail.ID)
		if err == nil && !known {
			var size uint32
			size, err = m.makeSegment(path, uint32(m.spare.size))
			m.made[tail.ID] = size - size/32 // the batch that reaches the limit, and the index behind it, find room
		}
		if err != nil {
			return err
		}
		snapshot.Failpoint("wal.made")
	}
	st.Segments = slices.Clone(st.Segments)
	for i := range st.Segments {
		st.Segments[i] = m.asMade(st.Segments[i])
	}
	maps.DeleteFunc(m.made, func(id uint64, _ uint32) bool {
		return !slices.ContainsFunc(st.Segments, func(s types.SegmentInfo) bool { return s.ID == id })
	})
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return m.Set(segmentsKey, sealValue(segmentsKey, b))
}

// makeSegment makes the file of a segment, zeros as far as it is to grow, and synced: a
// segment that the meta data names and that is not there, or shorter, was lost. It says
// how long that is: size, or less while no spare file is ready.
func (m *walMeta) makeSegment(path string, size uint32) (uint32, error) {
	if m.spare.take(path) {
		return size, syncDir(m.dir)
	}
	small := min(size, firstSegment)
	err := zeroSegment(path, int64(small))
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) { // what is being removed makes room, and half a spare file
		m.deletes.all.Wait()
		m.spare.all.Wait()
		if m.spare.take(path) {
			return size, syncDir(m.dir)
		}
		m.spare.discard()
		err = zeroSegment(path, int64(small))
	}
	if err != nil {
		return 0, err
	}
	return small, syncDir(m.dir)
}

// asMade is a segment as its file was made.
func (m *walMeta) asMade(s types.SegmentInfo) types.SegmentInfo {
	s.Codec = walCodecID
	if limit, ok := m.made[s.ID]; ok {
		s.SizeLimit = limit
	}
	return s
}

// names says that the file names the segment.
func (m *walMeta) names(id uint64) (bool, error) {
	st, err := m.Load("")
	for _, s := range st.Segments {
		if s.ID == id {
			return true, err
		}
	}
	return false, err
}

// GetStable implements types.MetaStore.
func (m *walMeta) GetStable(key []byte) ([]byte, error) { return m.Get(key) }

// SetStable implements types.MetaStore.
func (m *walMeta) SetStable(key, value []byte) error { return m.Set(key, value) }

// removeUnnamed removes the segments that the file does not name: a crash left them. One of
// them may have the name of the next segment that is made, and raft-wal, which lists what
// is there before it makes that, would remove it afterwards.
func (m *walMeta) removeUnnamed() error {
	st, err := m.Load("")
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(m.dir, "*.wal"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if !slices.ContainsFunc(st.Segments, func(s types.SegmentInfo) bool { return segment.FileName(s) == filepath.Base(f) }) {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// unnamed says that a segment holds something, though no segment is named.
func (m *walMeta) unnamed() (string, error) {
	files, err := filepath.Glob(filepath.Join(m.dir, "*.wal"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || written(b) > 0 {
			return f, err
		}
	}
	return "", nil
}
