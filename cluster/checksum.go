package cluster

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// bbolt has no checksums of its own, so a row of the log and a value of the
// stable store carry one. The first byte is the version of the row's format;
// FORMAT.md describes both.

const (
	rowVersion = 1
	sumLen     = 5 // version and CRC32C
)

// entrySum is the CRC32C over what an entry means: index, term, type, data.
func entrySum(l *raft.Log) uint32 {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, l.Data)
}

// appendEntrySum appends what the stored copy of l carries in Extensions.
func appendEntrySum(dst []byte, l *raft.Log) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, rowVersion), entrySum(l))
}

// checkEntry checks a stored entry that was asked for by its index, and takes
// the checksum off it.
func checkEntry(index uint64, l *raft.Log) error {
	x := l.Extensions
	valid := len(x) == sumLen && binary.LittleEndian.Uint32(x[1:]) == entrySum(l)
	switch {
	case newerRow(x, valid):
		return unknownRow(fmt.Sprintf("the row of entry %d", index), x[0])
	case l.Index != index:
		return fmt.Errorf("entry %d: the row says that it is entry %d", index, l.Index)
	case len(x) != sumLen:
		return fmt.Errorf("entry %d: no checksum", index)
	case x[0] != rowVersion:
		return fmt.Errorf("entry %d: the version of the row, %d", index, x[0])
	case !valid:
		return fmt.Errorf("entry %d: the checksum does not match", index)
	}
	l.Extensions = nil
	return nil
}

// sealValue is a value of the stable store with its checksum, which covers the
// key too.
func sealValue(key, value []byte) []byte {
	out := make([]byte, 0, sumLen+len(value))
	out = append(append(out, rowVersion), value...)
	return binary.LittleEndian.AppendUint32(out, valueSum(key, value))
}

func valueSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// openValue checks a sealed value and returns what is in it.
func openValue(key, sealed []byte) ([]byte, error) {
	var value []byte
	valid := false
	if n := len(sealed) - 4; n > 0 {
		value = sealed[1:n]
		valid = binary.LittleEndian.Uint32(sealed[n:]) == valueSum(key, value)
	}
	switch {
	case newerRow(sealed, valid):
		return nil, unknownRow(fmt.Sprintf("the value of %s", key), sealed[0])
	case len(sealed) < sumLen:
		return nil, fmt.Errorf("value of %s: no checksum", key)
	case sealed[0] != rowVersion:
		return nil, fmt.Errorf("value of %s: its version, %d", key, sealed[0])
	case !valid:
		return nil, fmt.Errorf("value of %s: the checksum does not match", key)
	}
	return value, nil
}
