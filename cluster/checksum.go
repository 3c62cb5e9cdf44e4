package cluster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// bbolt has no checksums of its own, so an entry of the log and a value of the
// stable store carry one. The first byte is the version of the row's format;
// FORMAT.md describes both.

const (
	rowVersion = 2
	sumLen     = 5             // of a value: version and CRC32C
	rowFixed   = 1 + 8 + 1 + 4 // of an entry: version, term, type, CRC32C
)

// entrySum is the CRC32C over what an entry means: index, term, type, data.
func entrySum(l *raft.Log) uint32 {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, l.Data)
}

// appendRow appends the row of an entry.
func appendRow(dst []byte, l *raft.Log) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, rowVersion), l.Term)
	dst = append(append(dst, byte(l.Type)), l.Data...)
	return binary.LittleEndian.AppendUint32(dst, entrySum(l))
}

// decodeRow reads and checks the row at index. The entry gets a copy of the data.
func decodeRow(index uint64, row []byte, l *raft.Log) error {
	end := len(row) - 4
	valid := false
	if len(row) >= rowFixed {
		*l = raft.Log{Index: index, Term: binary.LittleEndian.Uint64(row[1:]), Type: raft.LogType(row[9]), Data: bytes.Clone(row[10:end])}
		valid = uint64(entrySum(l)) == rowSum(row)
	}
	switch {
	case newerRow(row, valid):
		return unknownRow(fmt.Sprintf("the row of entry %d", index), row[0])
	case len(row) < rowFixed:
		return fmt.Errorf("entry %d: its row has %d bytes", index, len(row))
	case row[0] != rowVersion:
		return fmt.Errorf("entry %d: the version of the row, %d", index, row[0])
	case !valid:
		return fmt.Errorf("entry %d: the checksum does not match", index)
	}
	return nil
}

// rowSum is the checksum that a row carries, 0 if it is too short for one.
func rowSum(row []byte) uint64 {
	if len(row) < 4 {
		return 0
	}
	return uint64(binary.LittleEndian.Uint32(row[len(row)-4:]))
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
