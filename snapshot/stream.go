package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// The stream is described in FORMAT.md.

const (
	streamMagic = "LIMITD"

	headSize    = int64(len(streamMagic) + 1 + headerLen)
	trailerSize = int64(1 + 8 + 4)
	recordFixed = 1 + 2 + 8 // flags, length of the name, expiry
	flagTrailer = 0xff      // in the place of a record's flags
)

// streamSize is the length of the record in a stream.
func (x *value) streamSize(name []byte) int64 {
	n := int64(recordFixed + len(name))
	if x.flags == stateFollows {
		n += 4 + int64(len(x.state))
	}
	return n
}

// encoder appends the parts of a stream to byte slices and keeps its checksum.
type encoder struct {
	version      uint8 // 0 means 1
	begun, ended bool
	records      uint64
	bytes        int64
	crc          uint32
}

func (e *encoder) sum(dst []byte, start int) []byte {
	e.crc = crc32.Update(e.crc, castagnoli, dst[start:])
	e.bytes += int64(len(dst) - start)
	return dst
}

func (e *encoder) head(dst []byte, h Header) []byte {
	e.begun = true
	start := len(dst)
	dst = append(dst, streamMagic...)
	dst = append(dst, max(e.version, 1))
	return e.sum(appendHeader(dst, h), start)
}

func (e *encoder) value(dst, name []byte, x value) []byte {
	e.records++
	start := len(dst)
	dst = append(dst, x.flags)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(name)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(x.expiry))
	if x.flags == stateFollows {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(x.state)))
	}
	dst = append(dst, name...)
	if x.flags == stateFollows {
		dst = append(dst, x.state...)
	}
	return e.sum(dst, start)
}

func (e *encoder) trailer(dst []byte) []byte {
	e.ended = true
	start := len(dst)
	dst = append(dst, flagTrailer)
	dst = binary.LittleEndian.AppendUint64(dst, e.records)
	dst = e.sum(dst, start)
	e.bytes += 4
	return binary.LittleEndian.AppendUint32(dst, e.crc)
}

// Info is what Inspect and SaveTo find out about a stream. Equal states have equal checksums, on every node and in every run.
type Info struct {
	Header   Header
	Records  uint64
	Bytes    int64
	Checksum uint32 // CRC32C of all bytes before it; the last four bytes of the stream
}

func (e *encoder) info(h Header) Info {
	return Info{Header: h, Records: e.records, Bytes: e.bytes, Checksum: e.crc}
}

// StreamWriter writes a canonical stream.
type StreamWriter struct {
	w    io.Writer
	h    Header
	enc  encoder
	prev []byte
	buf  []byte
}

// NewStreamWriter begins a stream of version 1 on w. Writes are buffered until Close.
func NewStreamWriter(w io.Writer, h Header) *StreamWriter {
	sw := &StreamWriter{w: w, h: h}
	sw.buf = sw.enc.head(sw.buf, h)
	return sw
}

// Put writes the next record. Names must ascend, and the record be alive at the header's T.
func (sw *StreamWriter) Put(r Record) error {
	if err := checkNext(&sw.h, sw.prev, r.Name, r.Expiry); err != nil {
		return err
	}
	if err := checkRecord(r.Name, r.State); err != nil {
		return err
	}
	sw.prev = append(sw.prev[:0], r.Name...)
	x := value{flags: stateFollows, expiry: r.Expiry, state: r.State}
	if isExpiry(r.State, r.Expiry) {
		x = value{flags: stateIsExpiry, expiry: r.Expiry}
	}
	sw.buf = sw.enc.value(sw.buf, r.Name, x)
	if len(sw.buf) < 64<<10 {
		return nil
	}
	return sw.flush()
}

func (sw *StreamWriter) flush() error {
	_, err := sw.w.Write(sw.buf)
	sw.buf = sw.buf[:0]
	return err
}

// Close writes the trailer and what was buffered. It does not close the writer below.
func (sw *StreamWriter) Close() (Info, error) {
	sw.buf = sw.enc.trailer(sw.buf)
	return sw.enc.info(sw.h), sw.flush()
}

// checkNext says whether a record may follow the one named prev (nil: none) in a stream with the header h.
func checkNext(h *Header, prev, name []byte, expiry int64) error {
	if expiry <= h.T {
		return fmt.Errorf("%s expired at %d, cluster time is %d", describe(name), expiry, h.T)
	}
	if prev != nil && bytes.Compare(prev, name) >= 0 {
		return fmt.Errorf("%s is out of order", describe(name))
	}
	return nil
}
