package snapshot

import (
	"encoding/binary"
	"fmt"
)

// Bounds of what a record may hold. Commit refuses what exceeds them and ReadStream rejects it.
const (
	MaxName  = 32768                  // bytes of a name; the file's database takes no longer keys
	MaxIdent = 255                    // bytes of the identity part of a name
	MaxKey   = MaxName - 3 - MaxIdent // bytes of the key part of a name
	MaxState = 16 << 20               // bytes of a state
)

// AppendName appends the name of the record (ns, key, ident) to dst: ns(1) keylen(2, big endian) key ident. The records of one key
// are neighbours in name order. A key longer than MaxKey gives a name that Commit refuses.
func AppendName(dst []byte, ns uint8, key, ident []byte) []byte {
	dst = append(dst, ns)
	dst = binary.BigEndian.AppendUint16(dst, uint16(min(len(key), 0xffff)))
	dst = append(dst, key...)
	return append(dst, ident...)
}

// SplitName is the inverse of AppendName; key and ident alias name.
func SplitName(name []byte) (ns uint8, key, ident []byte, err error) {
	if len(name) > MaxName {
		return 0, nil, nil, fmt.Errorf("record name of %d bytes, at most %d", len(name), MaxName)
	}
	if len(name) < 3 {
		return 0, nil, nil, fmt.Errorf("record name %x is shorter than its prefix", name)
	}
	n := 3 + int(binary.BigEndian.Uint16(name[1:]))
	if n >= len(name) || len(name)-n > MaxIdent {
		return 0, nil, nil, fmt.Errorf("record name %.64x: a key of %d bytes leaves no identity of 1 to %d bytes", name, n-3, MaxIdent)
	}
	return name[0], name[3:n:n], name[n:], nil
}
