package fsm

import "bytes"

// Scan returns up to about count keys of ns that hold a record live at now, from
// cursor on, and the next cursor (0: done).
//
// A cursor is a place in hash order, below 2^40 and the same on every node of a
// cluster. Keys come in ascending order of their place, those that share one come
// together, and each key comes once, so a scan until 0 returns every key that
// stays throughout exactly once, whatever comes and goes meanwhile. A call looks
// at no more than about 16 records per key asked for, so it may return few keys,
// or none, before the end.
func (t *Table) Scan(ns uint8, cursor uint64, count int, now int64) (keys [][]byte, next uint64) {
	count = max(count, 1)
	look := max(16*count, 1024)
	for cursor>>32 < shards {
		s := &t.shard[cursor>>32]
		s.mu.RLock()
		keys, look, next = s.scan(ns, uint32(cursor), count, look, now, keys)
		s.mu.RUnlock()
		if next != 0 {
			return keys, cursor&^(1<<32-1) | next
		}
		cursor = (cursor>>32 + 1) << 32
		if len(keys) >= count || look <= 0 {
			break
		}
	}
	if cursor>>32 >= shards {
		return keys, 0
	}
	return keys, cursor
}

// scan appends the keys from tag on, and returns the tag where the next call
// goes on; 0 at the end of the shard.
func (s *shard) scan(ns uint8, tag uint32, count, look int, now int64, keys [][]byte) (_ [][]byte, left int, next uint64) {
	if s.n == 0 {
		return keys, look - 1, 0
	}
	group := len(keys) // the keys from here on share the current tag
	for i := s.seek(tag); i < len(s.slots); i++ {
		look--
		x := s.slots[i]
		if x.ref == 0 {
			continue
		}
		if x.tag != tag {
			if len(keys) >= count || look <= 0 {
				return keys, look, uint64(x.tag)
			}
			tag, group = x.tag, len(keys)
		}
		b := s.at(x.ref)
		if b[blkNS] != ns || b.is(flagTomb) || b.expiry() <= now || seen(keys[group:], b.key()) {
			continue
		}
		keys = append(keys, bytes.Clone(b.key()))
	}
	return keys, look, 0
}

func seen(keys [][]byte, key []byte) bool {
	for _, k := range keys {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}
