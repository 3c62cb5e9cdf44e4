package trace

import (
	"fmt"
	"hash/fnv"
)

// Digest of an entry's bytes: FNV-1a of 64 bits, as 16 hex digits. It joins the round
// that made an entry with the rows of the nodes that applied it.
func Digest(entry []byte) string {
	h := fnv.New64a()
	h.Write(entry)
	return Hash(h.Sum64())
}

// Hash writes a hash as rows have it.
func Hash(h uint64) string { return fmt.Sprintf("%016x", h) }
