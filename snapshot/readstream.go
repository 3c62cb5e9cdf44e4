package snapshot

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
)

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
	case !readable(b[len(streamMagic)]):
		return h, unknown("snapshot stream", b[len(streamMagic)], Reads)
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
