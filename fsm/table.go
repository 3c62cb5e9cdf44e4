package fsm

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/dchest/siphash"
)

const shards = 256

// Table holds the records in memory.
//
// A key's hash is SipHash over it, keyed from the cluster id and the namespace,
// so it is the same on every node. Its top 8 bits choose the shard, the next 32
// are the tag that the shard's index is ordered by; together they are the key's
// place, which SCAN's cursor names. Each shard has a lock of its own: readers
// share it, a batch takes it once for all its effects in the shard.
type Table struct {
	k0, k1 uint64
	shard  [shards]shard

	records [256]atomic.Int64 // per namespace, tombstones excluded
	bytes   atomic.Int64
	idle    atomic.Int64 // of bytes, in free lists
	dirty   atomic.Int64 // blocks changed since the last snapshot began

	wiped wipes // namespaces cleared since the last snapshot began

	sweep sweeper
}

// Record is one record as readers see it.
type Record struct {
	Ident  []byte
	State  []byte
	Expiry int64
}

// newTable makes an empty table for the cluster.
func newTable(clusterID [16]byte) *Table {
	t := &Table{
		k0: binary.LittleEndian.Uint64(clusterID[:8]),
		k1: binary.LittleEndian.Uint64(clusterID[8:]),
	}
	for i := range t.shard {
		t.shard[i].table = t
		t.shard[i].open = -1
		t.shard[i].cur = flagEven
	}
	return t
}

// Hash is what the methods that take h expect for a key of a namespace.
func (t *Table) Hash(ns uint8, key []byte) uint64 {
	return siphash.Hash(t.k0^uint64(ns), t.k1, key)
}

func tagOf(h uint64) uint32 { return uint32(h >> 24) }

func (t *Table) of(h uint64) *shard { return &t.shard[h>>56] }

// Get copies the state of a record into dst[:0] and returns it; expired records are returned too (the caller compares Expiry with its now).
func (t *Table) Get(h uint64, ns uint8, key, ident, dst []byte) (state []byte, expiry int64, ok bool) {
	s := t.of(h)
	s.mu.RLock()
	if b, _ := s.find(name{tagOf(h), ns, key, ident}); b != nil && !b.is(flagTomb) {
		state, expiry, ok = append(dst[:0], b.state()...), b.expiry(), true
	}
	s.mu.RUnlock()
	return state, expiry, ok
}

// View calls fn with the state of a record, an expired one too, under the shard's
// read lock, and returns whether there is one: fn must not call the table. The state
// is valid during the call, and is not fn's to change.
func (t *Table) View(h uint64, ns uint8, key, ident []byte, fn func(state []byte, expiry int64)) bool {
	s := t.of(h)
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, _ := s.find(name{tagOf(h), ns, key, ident})
	if b == nil || b.is(flagTomb) {
		return false
	}
	fn(b.state(), b.expiry())
	return true
}

// Records calls fn for each record of a key, expired ones too, under the shard's read lock: fn must not call the table. The slices are valid during the call.
func (t *Table) Records(h uint64, ns uint8, key []byte, fn func(r Record)) {
	s, tag := t.of(h), tagOf(h)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.n == 0 {
		return
	}
	for i := s.seek(tag); s.slots[i].ref != 0 && s.slots[i].tag == tag; i++ {
		if b := s.at(s.slots[i].ref); b.isKey(ns, key) && !b.is(flagTomb) {
			fn(Record{Ident: b.ident(), State: b.state(), Expiry: b.expiry()})
		}
	}
}

// Memory is about the bytes that a key's records take which mean something at now: their
// blocks and their slots. 0: it has none.
func (t *Table) Memory(h uint64, ns uint8, key []byte, now int64) (n int64) {
	s, tag := t.of(h), tagOf(h)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.n == 0 {
		return 0
	}
	for i := s.seek(tag); s.slots[i].ref != 0 && s.slots[i].tag == tag; i++ {
		if b := s.at(s.slots[i].ref); b.isKey(ns, key) && !b.is(flagTomb) && b.expiry() > now {
			n += int64(s.room(b)) + slotSize
		}
	}
	return n
}

// Len is the number of records of a namespace, not yet swept ones included.
func (t *Table) Len(ns uint8) int { return int(t.records[ns].Load()) }

// Bytes is the memory held: pages and slots, whether in use or free.
func (t *Table) Bytes() int64 { return t.bytes.Load() }

// Used is Bytes without what new records can take before more is needed. What
// was removed counts as used until a snapshot has taken the removal.
func (t *Table) Used() int64 { return t.bytes.Load() - t.idle.Load() }

// empty says that no shard holds a block, not even a tombstone.
func (t *Table) empty() bool {
	for i := range t.shard {
		s := &t.shard[i]
		s.mu.RLock()
		n := s.n
		s.mu.RUnlock()
		if n > 0 {
			return false
		}
	}
	return true
}

// load puts a record of a snapshot into a table that nobody else sees yet.
func (t *Table) load(ns uint8, key, ident, state []byte, expiry int64) {
	h := t.Hash(ns, key)
	s := t.of(h)
	s.put(name{tagOf(h), ns, key, ident}, state, stateIsExpiry(state, expiry), expiry)
	s.account()
}
