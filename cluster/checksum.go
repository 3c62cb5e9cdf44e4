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
	switch {
	case l.Index != index:
		return fmt.Errorf("entry %d: the row says that it is entry %d", index, l.Index)
	case len(l.Extensions) != sumLen:
		return fmt.Errorf("entry %d: no checksum", index)
	case l.Extensions[0] != rowVersion:
		return fmt.Errorf("entry %d: row format %d is unknown to this version", index, l.Extensions[0])
	case binary.LittleEndian.Uint32(l.Extensions[1:]) != entrySum(l):
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
	if len(sealed) < sumLen {
		return nil, fmt.Errorf("value of %s: no checksum", key)
	}
	if sealed[0] != rowVersion {
		return nil, fmt.Errorf("value of %s: format %d is unknown to this version", key, sealed[0])
	}
	value, sum := sealed[1:len(sealed)-4], sealed[len(sealed)-4:]
	if binary.LittleEndian.Uint32(sum) != valueSum(key, value) {
		return nil, fmt.Errorf("value of %s: the checksum does not match", key)
	}
	return value, nil
}
