package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// page reads the page id with what overflows from it, and marks it as seen. It stays valid until the next of the same depth.
func (c *boltCheck) page(id uint64, depth int) (page []byte, flags, count int, err error) {
	switch {
	case id < 2 || id >= c.high:
		return nil, 0, 0, c.bad("it refers to page %d of %d", id, c.high)
	case depth > boltMaxDepth:
		return nil, 0, 0, c.bad("page %d is %d pages below the root", id, depth)
	case c.pages[depth] == nil:
		c.pages[depth] = make([]byte, c.pageSize)
	}
	page = c.pages[depth][:c.pageSize]
	if _, err := c.f.ReadAt(page, int64(id*c.pageSize)); err != nil {
		return nil, 0, 0, fmt.Errorf("read page %d of %s: %w", id, c.path, err)
	}
	ne := binary.NativeEndian
	if got := ne.Uint64(page); got != id {
		return nil, 0, 0, c.bad("page %d says that it is page %d", id, got)
	}
	more := uint64(ne.Uint32(page[12:]))
	if more >= c.high-id {
		return nil, 0, 0, c.bad("page %d goes on for %d pages, past page %d", id, more, c.high)
	}
	for p := id; p <= id+more; p++ {
		if c.seen[p/64]&(1<<(p%64)) != 0 {
			return nil, 0, 0, c.bad("page %d is in use twice", p)
		}
		c.seen[p/64] |= 1 << (p % 64)
	}
	if more > 0 {
		page = append(page, make([]byte, more*c.pageSize)...)
		c.pages[depth] = page
		if _, err := c.f.ReadAt(page[c.pageSize:], int64((id+1)*c.pageSize)); err != nil {
			return nil, 0, 0, fmt.Errorf("read page %d of %s: %w", id, c.path, err)
		}
	}
	return page, int(ne.Uint16(page[8:])), int(ne.Uint16(page[10:])), nil
}

// tree checks the page id and all below it. Keys must be from low on and before high; nil: no bound.
func (c *boltCheck) tree(id uint64, low, high []byte, depth int) error {
	page, flags, count, err := c.page(id, depth)
	if err != nil {
		return err
	}
	switch {
	case flags == boltLeaf:
		return c.leaf(id, page, count, low, high, depth)
	case flags != boltBranch:
		return c.bad("page %d is of the unknown kind %x", id, flags)
	case count == 0:
		return c.bad("page %d branches to nothing", id)
	}
	ne := binary.NativeEndian
	key := low
	at := boltPageHeader + count*boltElement // where the next key must be
	for i := range count {
		next := high
		e, err := c.element(id, page, i, count)
		if err != nil {
			return err
		}
		pos, ksize := int(ne.Uint32(page[e:])), int(ne.Uint32(page[e+4:]))
		if e+pos != at {
			return c.bad("page %d, element %d: its key is at %d, not at %d", id, i, e+pos, at)
		}
		at += ksize
		if key, err = c.key(id, page, e, pos, ksize, i, key, high); err != nil {
			return err
		}
		if i+1 < count {
			e := e + boltElement
			if next, err = c.bytes(id, page, e, int(ne.Uint32(page[e:])), int(ne.Uint32(page[e+4:]))); err != nil {
				return err
			}
		}
		if err := c.tree(ne.Uint64(page[e+8:]), key, next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a page of keys and values, which may be buckets. bbolt packs them behind the last element, so a page that says it has
// fewer elements than were written, and would lose its last keys without a trace, is found by where its first key is.
func (c *boltCheck) leaf(id uint64, page []byte, count int, low, high []byte, depth int) error {
	ne := binary.NativeEndian
	key := low
	at := boltPageHeader + count*boltElement // where the next key must be
	for i := range count {
		e, err := c.element(id, page, i, count)
		if err != nil {
			return err
		}
		flags, pos, ksize, vsize := ne.Uint32(page[e:]), int(ne.Uint32(page[e+4:])), int(ne.Uint32(page[e+8:])), int(ne.Uint32(page[e+12:]))
		if e+pos != at {
			return c.bad("page %d, element %d: its key is at %d, not at %d", id, i, e+pos, at)
		}
		at += ksize + vsize
		if key, err = c.key(id, page, e, pos, ksize, i, key, high); err != nil {
			return err
		}
		v, err := c.bytes(id, page, e, pos+ksize, vsize)
		if err != nil {
			return err
		}
		switch flags {
		case 0:
		case boltBucket:
			if err := c.bucket(id, key, v, depth); err != nil {
				return err
			}
		default:
			return c.bad("page %d, element %d has the unknown flags %x", id, i, flags)
		}
	}
	return nil
}

// bucket checks a bucket below the page id: a tree of its own, or a leaf page within the value.
func (c *boltCheck) bucket(id uint64, name, v []byte, depth int) error {
	ne := binary.NativeEndian
	if len(v) < boltBucketLen {
		return c.bad("bucket %q on page %d has %d bytes", name, id, len(v))
	}
	if root := ne.Uint64(v); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	page := v[boltBucketLen:]
	if len(page) < boltPageHeader || ne.Uint16(page[8:]) != boltLeaf {
		return c.bad("bucket %q on page %d has no page", name, id)
	}
	return c.leaf(id, page, int(ne.Uint16(page[10:])), nil, nil, depth)
}

// element returns where element i of the page is.
func (c *boltCheck) element(id uint64, page []byte, i, count int) (int, error) {
	if boltPageHeader+count*boltElement > len(page) {
		return 0, c.bad("page %d has %d bytes and says that it has %d elements", id, len(page), count)
	}
	return boltPageHeader + i*boltElement, nil
}

// bytes returns the n bytes of the page at pos from the element at e.
func (c *boltCheck) bytes(id uint64, page []byte, e, pos, n int) ([]byte, error) {
	if from := e + pos; pos >= 0 && n >= 0 && n <= len(page) && from <= len(page)-n {
		return page[from : from+n], nil
	}
	return nil, c.bad("page %d has an element outside of it", id)
}

// key returns the key of element i at e, which must be after prev (from prev on if it is the first) and before high.
func (c *boltCheck) key(id uint64, page []byte, e, pos, n, i int, prev, high []byte) ([]byte, error) {
	key, err := c.bytes(id, page, e, pos, n)
	if err != nil {
		return nil, err
	}
	order := bytes.Compare(prev, key)
	if n == 0 || order > 0 || order == 0 && i > 0 || high != nil && bytes.Compare(key, high) >= 0 {
		return nil, c.bad("page %d, element %d: its key is out of order", id, i)
	}
	return key, nil
}

// free checks the list of free pages, which must not be in use.
func (c *boltCheck) free(id uint64) error {
	page, flags, count, err := c.page(id, 0)
	if err != nil {
		return err
	}
	if flags != boltFreelist {
		return c.bad("page %d is no list of free pages", id)
	}
	ne := binary.NativeEndian
	ids := page[boltPageHeader:]
	n := uint64(count)
	if n == 0xffff { // the count did not fit
		n = ne.Uint64(ids)
		ids = ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return c.bad("page %d has no room for %d free pages", id, n)
	}
	for i := range n {
		p := ne.Uint64(ids[i*8:])
		if p < 2 || p >= c.high || c.seen[p/64]&(1<<(p%64)) != 0 {
			return c.bad("the list of free pages has page %d, which is in use or none", p)
		}
		c.seen[p/64] |= 1 << (p % 64)
	}
	return nil
}
