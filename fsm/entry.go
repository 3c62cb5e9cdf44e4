package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	entryHeader  = 1 + 8 + 8 + 8 // version, base, term, at
	entryTrailer = 4             // CRC32C
	entryMin     = entryHeader + 1 + entryTrailer

	offBase = 1
	offTerm = 9
	offAt   = 17

	opMask         = 0x0f
	flagStateIsExp = 0x10 // the state is the expiry in 8 bytes, little endian, and is not written
	flagCut        = 0x20 // the bytes to cut follow those to drop; from VersionCut on
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamaged = errors.New("damaged entry")

// AppendEntry appends the entry that proposes effects at turn to dst, and
// allocates only what dst lacks.
//
// It panics on a version above [ReadsEntry], on an effect that no record can have
// (see [MaxKey]), on one whose state is not what its op says, and on a cut in a
// version below [VersionCut]: once committed, such an entry would halt nodes.
func AppendEntry(dst []byte, t Turn, effects []Effect) []byte {
	start := len(dst)
	version := max(t.Version, 1)
	if version > ReadsEntry {
		panic(fmt.Sprintf("fsm: entry of version %d", version))
	}
	dst = append(dst, version)
	dst = binary.LittleEndian.AppendUint64(dst, t.Base)
	dst = binary.LittleEndian.AppendUint64(dst, t.Term)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.At))
	dst = binary.AppendUvarint(dst, uint64(len(effects)))
	for i := range effects {
		dst = appendEffect(dst, version, t.At, &effects[i])
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func appendEffect(dst []byte, version byte, at int64, e *Effect) []byte {
	switch e.Op {
	case OpReplace, OpSplice, OpDelete:
		if len(e.Key) > MaxKey || len(e.Ident) == 0 || len(e.Ident) > MaxIdent || len(e.State) > MaxState || e.Drop < 0 || e.Cut < 0 || e.Drop > MaxState-e.Cut {
			panic(fmt.Sprintf("fsm: effect with a key of %d bytes, an identity of %d, a state of %d, a drop of %d, a cut of %d", len(e.Key), len(e.Ident), len(e.State), e.Drop, e.Cut))
		}
		cuts := e.Op == OpSplice && e.Cut > 0
		if cuts && version < VersionCut {
			panic(fmt.Sprintf("fsm: a cut in an entry of version %d", version))
		}
		same := e.Op == OpReplace && stateIsExpiry(e.State, e.Expiry)
		tag := byte(e.Op)
		if same {
			tag |= flagStateIsExp
		}
		if cuts {
			tag |= flagCut
		}
		dst = append(dst, tag, e.NS)
		dst = binary.AppendUvarint(dst, uint64(len(e.Key)))
		dst = append(dst, e.Key...)
		dst = append(dst, byte(len(e.Ident)))
		dst = append(dst, e.Ident...)
		if e.Op == OpDelete {
			return dst
		}
		if e.Op == OpSplice {
			dst = binary.AppendUvarint(dst, uint64(e.Drop))
		}
		if cuts {
			dst = binary.AppendUvarint(dst, uint64(e.Cut))
		}
		dst = binary.AppendVarint(dst, int64(uint64(e.Expiry)-uint64(at))) // wraps, and back
		if same {
			return dst
		}
		dst = binary.AppendUvarint(dst, uint64(len(e.State)))
		return append(dst, e.State...)
	case OpClear:
		return append(dst, byte(e.Op), e.NS)
	case OpClearAll:
		return append(dst, byte(e.Op))
	case OpSetCluster, OpSetOffset:
		if len(e.State) != fixedState(e.Op) || e.Op == OpSetCluster && [16]byte(e.State) == [16]byte{} {
			panic(fmt.Sprintf("fsm: effect %d with state %x", e.Op, e.State))
		}
		return append(append(dst, byte(e.Op)), e.State...)
	}
	panic(fmt.Sprintf("fsm: effect with op %d", e.Op))
}

// fixedState is the length of the state of an op that always has the same.
func fixedState(op Op) int {
	if op == OpSetCluster {
		return 16 + 8
	}
	return 8
}

func stateIsExpiry(state []byte, expiry int64) bool {
	return len(state) == 8 && binary.LittleEndian.Uint64(state) == uint64(expiry)
}

// EntryTime reads the cluster time of an entry without decoding it; false if it is no entry of ours.
func EntryTime(data []byte) (at int64, ok bool) {
	if len(data) < entryMin || !readable(data[0]) {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(data[offAt:])), true
}

// entry is a checked entry. body holds count effects, each of which decodes without error.
type entry struct {
	Turn
	count    uint64
	body     []byte
	settings bool // it sets the cluster id or the offset
}

// parseEntry checks all of an entry and allocates nothing unless it fails. What
// it returns aliases data.
func parseEntry(data []byte) (entry, error) {
	sealed, err := openEntry(data)
	if err != nil {
		return entry{}, err
	}
	if len(data) < entryMin {
		return entry{}, fmt.Errorf("%w: %d bytes, at least %d expected", errDamaged, len(data), entryMin)
	}
	e := entry{Turn: Turn{
		Base:    binary.LittleEndian.Uint64(data[offBase:]),
		Term:    binary.LittleEndian.Uint64(data[offTerm:]),
		At:      int64(binary.LittleEndian.Uint64(data[offAt:])),
		Version: data[0],
	}}
	n := 0
	e.count, n = binary.Uvarint(sealed[entryHeader:])
	if n <= 0 {
		return entry{}, fmt.Errorf("%w: effect count", errDamaged)
	}
	e.body = sealed[entryHeader+n:]
	d := e.effects(0)
	for i := range e.count {
		if err := d.next(); err != nil {
			return entry{}, fmt.Errorf("%w: effect %d of %d: %w", errDamaged, i+1, e.count, err)
		}
		e.settings = e.settings || d.effect.Op == OpSetCluster || d.effect.Op == OpSetOffset
	}
	if len(d.rest) > 0 {
		return entry{}, fmt.Errorf("%w: %d bytes after the last effect", errDamaged, len(d.rest))
	}
	return e, nil
}

// openEntry checks what all versions have, the version in front and the checksum
// at the end, and takes the checksum off. The checksum is first: it is what tells
// damage from a version that is unknown here.
func openEntry(data []byte) (sealed []byte, err error) {
	if len(data) < 1+entryTrailer {
		return nil, fmt.Errorf("%w: %d bytes", errDamaged, len(data))
	}
	sealed, sum := data[:len(data)-entryTrailer], binary.LittleEndian.Uint32(data[len(data)-entryTrailer:])
	if got := crc32.Checksum(sealed, castagnoli); got != sum {
		return nil, fmt.Errorf("%w: checksum %08x, %08x expected", errDamaged, got, sum)
	}
	if !readable(data[0]) {
		return nil, unknownVersion(data[0])
	}
	return sealed, nil
}

// effects returns a decoder at byte pos of the body.
func (e *entry) effects(pos int) decoder {
	return decoder{rest: e.body[pos:], version: e.Version, at: e.At}
}
