package fsm

import (
	"bytes"
	"encoding/binary"
)

// block is a piece of an arena page, the rest of the page included: a record, a
// tombstone, or free. Integers are little endian.
//
//	 0  flags
//	 1  namespace
//	 2  key length, 2 bytes
//	 4  identity length
//	 5  size of the block in units of 8 bytes, 2 bytes; 0: the whole page
//	 7  expiry, 8 bytes; of a free block: the next free one, 4 bytes
//	15  key, identity
//	    length of the state, 4 bytes, and the state; absent with flagSame
//
// A GCRA record of a 24-byte key, whose state is its expiry, takes 40 bytes.
type block []byte

const (
	blkFlags  = 0
	blkNS     = 1
	blkKey    = 2
	blkIdent  = 4
	blkUnits  = 5
	blkExpiry = 7
	blkName   = 15

	unit = 8 // bytes
)

const (
	flagFree  = 1 << iota // not in use
	flagTomb              // removed, kept until a snapshot has taken the removal
	flagSame              // the state is the expiry in 8 bytes
	flagEven              // changed since the last snapshot, or not yet copied into the running one:
	flagOdd               // the two take turns, see dirty.go
	flagDirty = flagEven | flagOdd
)

// name is where a record is found: the tag (see index) and what must match.
type name struct {
	tag        uint32
	ns         uint8
	key, ident []byte
}

// sizeOf is the bytes that a record takes in a block; with same its state is not stored.
func sizeOf(key, ident, state int, same bool) int {
	n := blkName + key + ident
	if !same {
		n += 4 + state
	}
	return n
}

func (b block) is(flag byte) bool { return b[blkFlags]&flag != 0 }
func (b block) set(flag byte)     { b[blkFlags] |= flag }
func (b block) clear(flag byte)   { b[blkFlags] &^= flag }

func (b block) keyLen() int       { return int(binary.LittleEndian.Uint16(b[blkKey:])) }
func (b block) identLen() int     { return int(b[blkIdent]) }
func (b block) units() int        { return int(binary.LittleEndian.Uint16(b[blkUnits:])) }
func (b block) setUnits(n int)    { binary.LittleEndian.PutUint16(b[blkUnits:], uint16(n)) }
func (b block) expiry() int64     { return int64(binary.LittleEndian.Uint64(b[blkExpiry:])) }
func (b block) setExpiry(e int64) { binary.LittleEndian.PutUint64(b[blkExpiry:], uint64(e)) }
func (b block) next() uint32      { return binary.LittleEndian.Uint32(b[blkExpiry:]) }
func (b block) setNext(r uint32)  { binary.LittleEndian.PutUint32(b[blkExpiry:], r) }

func (b block) key() []byte {
	return b[blkName : blkName+b.keyLen() : blkName+b.keyLen()]
}

func (b block) ident() []byte {
	i := blkName + b.keyLen()
	return b[i : i+b.identLen() : i+b.identLen()]
}

func (b block) isKey(ns uint8, key []byte) bool {
	return b[blkNS] == ns && b.keyLen() == len(key) && bytes.Equal(b.key(), key)
}

func (b block) isRecord(n name) bool {
	return b.isKey(n.ns, n.key) && b.identLen() == len(n.ident) && bytes.Equal(b.ident(), n.ident)
}

// size is the bytes of the record in the block.
func (b block) size() int {
	return sizeOf(b.keyLen(), b.identLen(), b.stateLen(), b.is(flagSame))
}

func (b block) stateLen() int {
	if b.is(flagSame) {
		return 8
	}
	return int(binary.LittleEndian.Uint32(b[blkName+b.keyLen()+b.identLen():]))
}

// state aliases the block. With flagSame it is the expiry's own bytes.
func (b block) state() []byte {
	if b.is(flagSame) {
		return b[blkExpiry : blkExpiry+8 : blkExpiry+8]
	}
	i, n := blkName+b.keyLen()+b.identLen()+4, b.stateLen()
	return b[i : i+n : i+n]
}

// setName makes the block a tombstone of n; the dirty marks are gone.
func (b block) setName(n name) {
	b[blkFlags] = flagTomb | flagSame
	b[blkNS] = n.ns
	binary.LittleEndian.PutUint16(b[blkKey:], uint16(len(n.key)))
	b[blkIdent] = byte(len(n.ident))
	copy(b[blkName:], n.key)
	copy(b[blkName+len(n.key):], n.ident)
}

// setState makes the block a live record. It must be large enough.
func (b block) setState(state []byte, same bool, expiry int64) {
	b.clear(flagTomb)
	b.setExpiry(expiry)
	if same {
		b.set(flagSame)
		return
	}
	b.clear(flagSame)
	copy(b.stretch(len(state)), state)
}

// stretch sets the length of a state that is not the expiry, and returns it.
func (b block) stretch(n int) []byte {
	i := blkName + b.keyLen() + b.identLen()
	binary.LittleEndian.PutUint32(b[i:], uint32(n))
	return b[i+4 : i+4+n]
}
