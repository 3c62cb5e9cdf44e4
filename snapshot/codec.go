package snapshot

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// Everything in this file is described in FORMAT.md; numbers are little endian.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	receiptVersion = 1

	headerLen = 8 + 8 + 8 + 8 + 16 + 8
	metaFixed = 1 + 8 + 8 + 8 + headerLen + 8 + 8 + 4 // up to the configuration
	valueMin  = 4 + 1 + 8                             // checksum, flags, expiry

	stateFollows  = 0 // flags of a record
	stateIsExpiry = 1 // the state is the 8 bytes of the expiry, stored once
)

// tally is how the meta data knows which records the file holds: how many, and the sum of their checksums. It does not depend on the
// order in which they were written, so a transaction moves it by what it changes.
type tally struct{ records, sum uint64 }

func (t *tally) add(crc uint32) { t.records++; t.sum += uint64(crc) }
func (t *tally) sub(crc uint32) { t.records--; t.sum -= uint64(crc) }

// check compares what was counted in the file at path with what its meta data says.
func (t tally) check(path string, m *fileMeta) error {
	if t == m.tally {
		return nil
	}
	return damaged(path, "it holds %d records with checksum sum %x, its meta data says %d with %x", t.records, t.sum, m.records, m.sum)
}

// fileMeta is the meta data as the file has it.
type fileMeta struct {
	Meta
	tally
	version uint8 // of the meta data; 0 means 1
}

func appendHeader(dst []byte, h Header) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, h.Last)
	dst = le.AppendUint64(dst, uint64(h.T))
	dst = le.AppendUint64(dst, uint64(h.Offset))
	dst = le.AppendUint64(dst, h.Chain)
	dst = append(dst, h.ClusterID[:]...)
	return le.AppendUint64(dst, h.Generation)
}

func decodeHeader(b []byte) (h Header) {
	le := binary.LittleEndian
	h.Last, h.T, h.Offset, h.Chain = le.Uint64(b), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:])), le.Uint64(b[24:])
	copy(h.ClusterID[:], b[32:48])
	h.Generation = le.Uint64(b[48:])
	return h
}

func appendMeta(dst []byte, m fileMeta) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = append(dst, max(m.version, 1))
	dst = le.AppendUint64(dst, m.Index)
	dst = le.AppendUint64(dst, m.Term)
	dst = le.AppendUint64(dst, m.ConfigurationIndex)
	dst = appendHeader(dst, m.Header)
	dst = le.AppendUint64(dst, m.records)
	dst = le.AppendUint64(dst, m.sum)
	conf := raft.EncodeConfiguration(m.Configuration)
	dst = le.AppendUint32(dst, uint32(len(conf)))
	dst = append(dst, conf...)
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// decodeMeta reads the meta data. The version comes first, so that a newer file is not called damaged.
func decodeMeta(path string, b []byte) (m fileMeta, err error) {
	le := binary.LittleEndian
	if len(b) == 0 {
		return m, damaged(path, "it has no meta data")
	}
	body, ok := checkedBody(b)
	if m.version = b[0]; !readable(m.version) && ok {
		return m, unknown("meta data of "+path, m.version, Reads)
	}
	if !ok || len(body) < metaFixed || len(body) != metaFixed+int(le.Uint32(body[metaFixed-4:])) {
		return m, damaged(path, "checksum of its meta data")
	}
	m.Index, m.Term, m.ConfigurationIndex = le.Uint64(body[1:]), le.Uint64(body[9:]), le.Uint64(body[17:])
	body = body[25:]
	m.Header = decodeHeader(body)
	body = body[headerLen:]
	m.records, m.sum = le.Uint64(body), le.Uint64(body[8:])
	err = guarded(path, func() error { // raft panics on a configuration that it cannot decode
		m.Configuration = raft.DecodeConfiguration(body[20:])
		return nil
	})
	return m, err
}

func appendReceipt(dst []byte, r Receipt) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = append(dst, receiptVersion)
	dst = le.AppendUint64(dst, uint64(r.At))
	dst = le.AppendUint64(dst, uint64(r.Boot))
	dst = append(dst, r.BootID...)
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func decodeReceipt(path string, b []byte) (r Receipt, err error) {
	body, ok := checkedBody(b)
	switch {
	case ok && len(body) > 0 && body[0] != receiptVersion:
		return r, unknown("receipt of "+path, body[0], receiptVersion)
	case !ok || len(body) < 17:
		return r, damaged(path, "checksum of its receipt")
	}
	le := binary.LittleEndian
	return Receipt{At: int64(le.Uint64(body[1:])), Boot: int64(le.Uint64(body[9:])), BootID: string(body[17:])}, nil
}

func appendNote(dst, note []byte) []byte {
	start := len(dst)
	dst = append(dst, note...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// decodeNote returns a copy of the note that b holds.
func decodeNote(path string, b []byte) ([]byte, error) {
	note, ok := checkedBody(b)
	if !ok || len(note) == 0 {
		return nil, damaged(path, "checksum of its note")
	}
	return bytes.Clone(note), nil
}

// checkedBody cuts the checksum off the end of b and says whether it is right.
func checkedBody(b []byte) ([]byte, bool) {
	n := len(b) - 4
	if n < 0 {
		return nil, false
	}
	return b[:n], binary.LittleEndian.Uint32(b[n:]) == crc32.Checksum(b[:n], castagnoli)
}

// isExpiry reports whether the state is nothing but the expiry.
func isExpiry(state []byte, expiry int64) bool {
	return len(state) == 8 && int64(binary.LittleEndian.Uint64(state)) == expiry
}

// valueLen is the length of the value that appendValue appends.
func valueLen(state []byte, expiry int64) int {
	if isExpiry(state, expiry) {
		return valueMin
	}
	return valueMin + len(state)
}

// appendValue appends the value under which the file keeps a record, and returns its checksum.
func appendValue(dst, name, state []byte, expiry int64) ([]byte, uint32) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if isExpiry(state, expiry) {
		dst = append(dst, stateIsExpiry)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(expiry))
	} else {
		dst = append(dst, stateFollows)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(expiry))
		dst = append(dst, state...)
	}
	crc := valueCRC(name, dst[start+4:])
	binary.LittleEndian.PutUint32(dst[start:], crc)
	return dst, crc
}

// value is a record as the file has it: a state that is the expiry is nil with flags stateIsExpiry.
type value struct {
	flags  byte
	expiry int64
	state  []byte
	crc    uint32
}

func valueCRC(name, rest []byte) uint32 {
	return crc32.Update(crc32.Checksum(name, castagnoli), castagnoli, rest)
}

// decodeValue checks and splits the value v of name; the state aliases v.
func decodeValue(name, v []byte) (x value, ok bool) {
	if len(v) < valueMin {
		return x, false
	}
	le := binary.LittleEndian
	x = value{flags: v[4], expiry: int64(le.Uint64(v[5:])), crc: le.Uint32(v)}
	if x.crc != valueCRC(name, v[4:]) {
		return x, false
	}
	switch x.flags {
	case stateFollows:
		x.state = v[valueMin:]
		return x, true
	case stateIsExpiry:
		return x, len(v) == valueMin
	}
	return x, false
}
