package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// raft-wal believes what it finds: it stops reading the newest segment where a frame
// makes no sense, checks the newest batch only, and makes a segment that is missing
// anew. Entries that were acknowledged would be gone and nobody would know. So every
// file is read and checked here before raft-wal gets it.
//
// A segment is a header and then batches: frames of entries, and a commit frame with
// the CRC32C of all that is new since the last one. A sealed one ends with the offsets
// of its entries in an index frame. Numbers are little endian; frames begin at
// multiples of 8.
const (
	walHeader = 32
	walFrame  = 8 // type, 3 zeros, and length of what follows, or the checksum of a batch

	frameEntry, frameIndex, frameCommit = 1, 2, 3
)

// walSegment is a segment that was read.
type walSegment struct {
	types.SegmentInfo
	f       *os.File
	path    string
	offsets []uint32 // of the frames of its entries, from BaseIndex on
	end     int64    // behind the last whole batch, 0: there is none
	rest    int64    // behind the last byte of a batch that is not whole; at most end: there is none
	index   uint64   // where the offsets are in the file, if it is sealed there, else 0
}

// openSegment reads and checks a segment. One that has not been sealed, and was
// written when the machine failed, may end with a part of a batch.
func openSegment(dir string, info types.SegmentInfo) (*walSegment, error) {
	s := &walSegment{SegmentInfo: info, path: filepath.Join(dir, segment.FileName(info))}
	b, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing", s.path)
	}
	if err != nil {
		return nil, err
	}
	if err := s.check(b); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	s.f, err = os.Open(s.path)
	return s, err
}

// check compares what is in the file with what is known of it.
func (s *walSegment) check(b []byte) error {
	s.walk(b)
	sealed := !s.SealTime.IsZero()
	last := s.BaseIndex + uint64(len(s.offsets)) - 1
	switch {
	case s.end > 0 && !s.headed(b):
		return errors.New("its header is another segment's")
	case sealed && (s.index == 0 || s.index != s.IndexStart):
		return fmt.Errorf("what follows byte %d is damaged", s.end)
	case sealed && s.MaxIndex > last:
		return fmt.Errorf("it ends at entry %d instead of %d", last, s.MaxIndex)
	case sealed:
		return nil
	case int64(len(b)) < int64(s.SizeLimit):
		return fmt.Errorf("it has %d bytes, and was made with %d", len(b), s.SizeLimit)
	case len(s.offsets) > 0 && s.MinIndex > last:
		return fmt.Errorf("it ends at entry %d, before its first one, %d", last, s.MinIndex)
	case s.index == 0:
		s.rest = written(b)
		return interrupted(b, s.end, s.rest, last)
	}
	return nil
}

// walk finds the whole batches at the beginning.
func (s *walSegment) walk(b []byte) {
	var offsets []uint32 // of the batch
	var index uint64
	at := int64(walHeader)
	for s.index == 0 && at+walFrame <= int64(len(b)) {
		n := int64(binary.LittleEndian.Uint32(b[at+4:]))
		switch b[at] {
		case frameEntry:
			offsets = append(offsets, uint32(at))
		case frameIndex:
			index = uint64(at + walFrame)
		case frameCommit:
			if crc32.Checksum(b[s.end:at], castagnoli) != uint32(n) {
				return
			}
			s.offsets, offsets = append(s.offsets, offsets...), nil
			s.index = index
			s.end = at + walFrame
			n = 0
		default:
			return
		}
		at += walFrame + padded(n)
	}
}

func padded(n int64) int64 { return (n + 7) &^ 7 }

// headed says that the file begins with the header of this segment.
func (s *walSegment) headed(b []byte) bool {
	h := appendSegmentHeader(nil, s.SegmentInfo)
	return string(b[:walHeader]) == string(h)
}

func appendSegmentHeader(dst []byte, info types.SegmentInfo) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, 0x58eb6b0d) // and version 0
	for _, n := range []uint64{info.BaseIndex, info.ID, info.Codec} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return dst
}

// read gets and checks the entry at index i, which the segment holds.
func (s *walSegment) read(i uint64, l *raft.Log) error {
	var head [walFrame]byte
	at := int64(s.offsets[i-s.BaseIndex])
	if _, err := s.f.ReadAt(head[:], at); err != nil {
		return err
	}
	row := make([]byte, binary.LittleEndian.Uint32(head[4:]))
	if _, err := s.f.ReadAt(row, at+walFrame); err != nil {
		return err
	}
	return decodeRow(i, row, l)
}

// appendSeal appends the batch that seals the segment.
func (s *walSegment) appendSeal(dst []byte) []byte {
	from := len(dst)
	dst = binary.LittleEndian.AppendUint32(append(dst, frameIndex, 0, 0, 0), uint32(4*len(s.offsets)))
	for _, o := range s.offsets {
		dst = binary.LittleEndian.AppendUint32(dst, o)
	}
	if len(s.offsets)%2 == 1 {
		dst = append(dst, 0, 0, 0, 0)
	}
	sum := crc32.Checksum(dst[from:], castagnoli)
	return binary.LittleEndian.AppendUint32(append(dst, frameCommit, 0, 0, 0), sum)
}
