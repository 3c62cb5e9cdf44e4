package snapshot

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// The stream is described in FORMAT.md.

const (
	streamMagic   = "LIMITD"
	streamVersion = 1

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
	dst = append(dst, streamVersion)
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

// NewStreamWriter begins a stream on w. Writes are buffered until Close.
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

// ReadStream reads a stream to its end and checks all of it: format, order, bounds, count and checksum. It calls head once, then rec
// for each record in name order; slices are valid during the call. What they were given counts only once ReadStream has returned nil.
// Errors wrap ErrDamaged, ErrVersion, or are those of r, head and rec. However long a length claims to be, no more memory is used than
// the stream has bytes, and some.
func ReadStream(r io.Reader, head func(Header) error, rec func(Record) error) (Header, error) {
	info, err := readStream(r, head, rec)
	return info.Header, err
}

// Inspect checks a stream and says what it holds.
func Inspect(r io.Reader) (Info, error) {
	return readStream(r, func(Header) error { return nil }, func(Record) error { return nil })
}

func readStream(r io.Reader, head func(Header) error, rec func(Record) error) (Info, error) {
	d := decoder{r: bufio.NewReaderSize(r, 64<<10)}
	h, err := d.head()
	if err != nil {
		return Info{}, err
	}
	info := Info{Header: h}
	if err := head(h); err != nil {
		return info, err
	}
	var prev []byte
	for {
		x, err := d.next()
		if err != nil {
			return info, err
		}
		if x.Name == nil {
			info.Records, info.Bytes, info.Checksum = d.records, d.bytes, d.crc
			return info, nil
		}
		if err := checkNext(&h, prev, x.Name, x.Expiry); err != nil {
			return info, damaged("snapshot stream", "%v", err)
		}
		prev = append(prev[:0], x.Name...)
		if err := rec(x); err != nil {
			return info, err
		}
		d.records++
	}
}

// decoder splits a stream into its parts and keeps its checksum.
type decoder struct {
	r       *bufio.Reader
	records uint64
	bytes   int64
	crc     uint32
	buf     []byte // the record: name, then state
}

// take reads n bytes into buf[at:at+n].
func (d *decoder) take(at, n int) ([]byte, error) {
	for got := 0; got < n; {
		step := min(n-got, 64<<10) // trust in a length grows with the bytes that come
		if need := at + got + step; need > cap(d.buf) {
			d.buf = append(d.buf[:at+got], make([]byte, step)...)
		}
		d.buf = d.buf[:at+got+step]
		m, err := io.ReadFull(d.r, d.buf[at+got:])
		d.bytes += int64(m)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, damaged("snapshot stream", "it ends after %d bytes, in the middle", d.bytes)
		}
		if err != nil {
			return nil, err
		}
		got += step
	}
	b := d.buf[at : at+n]
	d.crc = crc32.Update(d.crc, castagnoli, b)
	return b, nil
}

func (d *decoder) head() (h Header, err error) {
	b, err := d.take(0, len(streamMagic)+1)
	switch {
	case err != nil:
		return h, err
	case string(b[:len(streamMagic)]) != streamMagic:
		return h, damaged("snapshot stream", "it begins with %q, not with %q: this is no snapshot of limitd", b[:len(streamMagic)], streamMagic)
	case b[len(streamMagic)] != streamVersion:
		return h, fmt.Errorf("snapshot stream: %w %d, this limitd reads %d", ErrVersion, b[len(streamMagic)], streamVersion)
	}
	if b, err = d.take(0, headerLen); err != nil {
		return h, err
	}
	return decodeHeader(b), nil
}

// next returns the next record, or one without a name after the trailer.
func (d *decoder) next() (r Record, err error) {
	le := binary.LittleEndian
	b, err := d.take(0, 1)
	if err != nil {
		return r, err
	}
	flags := b[0]
	if flags == flagTrailer {
		return r, d.trailer()
	}
	if flags != stateFollows && flags != stateIsExpiry {
		return r, damaged("snapshot stream", "record %d has the unknown flags %x", d.records, flags)
	}
	if b, err = d.take(0, recordFixed-1); err != nil {
		return r, err
	}
	names, states := int(le.Uint16(b)), 8
	r.Expiry = int64(le.Uint64(b[2:]))
	if flags == stateFollows {
		if b, err = d.take(0, 4); err != nil {
			return r, err
		}
		if n := le.Uint32(b); n > MaxState {
			return r, damaged("snapshot stream", "record %d has a state of %d bytes, at most %d", d.records, n, MaxState)
		}
		states = int(le.Uint32(b))
	}
	if _, err = d.take(0, names); err != nil {
		return r, err
	}
	if _, _, _, err := SplitName(d.buf[:names]); err != nil {
		return r, damaged("snapshot stream", "%v", err)
	}
	if flags == stateIsExpiry {
		d.buf = le.AppendUint64(d.buf[:names], uint64(r.Expiry))
	} else if _, err = d.take(names, states); err != nil {
		return r, err
	}
	r.Name, r.State = d.buf[:names:names], d.buf[names:names+states]
	if flags == stateFollows && isExpiry(r.State, r.Expiry) {
		return r, damaged("snapshot stream", "%s has its expiry as state, spelled out", describe(r.Name))
	}
	return r, nil
}

// trailer checks count and checksum, and that nothing follows.
func (d *decoder) trailer() error {
	b, err := d.take(0, 8)
	if err != nil {
		return err
	}
	if n := binary.LittleEndian.Uint64(b); n != d.records {
		return damaged("snapshot stream", "it has %d records, its trailer says %d", d.records, n)
	}
	crc := d.crc
	if b, err = d.take(0, 4); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(b) != crc {
		return damaged("snapshot stream", "its checksum is %08x, its trailer says %08x", crc, binary.LittleEndian.Uint32(b))
	}
	d.crc = crc
	if _, err := d.r.ReadByte(); err == nil {
		return damaged("snapshot stream", "bytes follow its trailer")
	} else if err != io.EOF {
		return err
	}
	return nil
}
