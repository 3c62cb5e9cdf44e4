package snapshot

import (
	"encoding/binary"
	"hash/fnv"
)

// tree makes the pages of a bbolt file that has its records from the beginning, in name order, each page once and the leaves before what
// branches to them. check.go describes the layout. bbolt's own transactions take some five times as long for that, and leave the collector
// some 500 bytes for each record (bench/NOTES.md; BenchmarkRebuild100kOf1M, before and after).
type tree struct {
	pageSize int
	fill     int     // a page is full at so many bytes; a single record may take more, and further pages
	next     uint64  // the page that comes next
	out      []byte  // pages that are made and not yet written
	levels   []*node // the pages that grow: the last leaf, the last branch to leaves, and so on
}

// node is a page that grows.
type node struct {
	elements []element
	data     []byte // their keys and values
}

type element struct {
	key, value int    // lengths
	ref        uint64 // flags in a leaf, the page in a branch
}

func newTree(pageSize, fill int) *tree { return &tree{pageSize: pageSize, fill: fill, next: 2} }

// put adds a record. Names must ascend.
func (t *tree) put(name, value []byte) { t.add(0, element{len(name), len(value), 0}, name, value) }

func (t *tree) add(level int, e element, key, value []byte) {
	if level == len(t.levels) {
		t.levels = append(t.levels, &node{})
	}
	n := t.levels[level]
	if full := n.size()+boltElement+len(key)+len(value) > t.fill; level == 0 && full && len(n.elements) > 0 {
		t.cut(level, 0)
	} else if level > 0 && full && len(n.elements) > 2 {
		t.cut(level, 1) // a branch to one page only is none, so the next gets one more
	}
	n.elements = append(n.elements, e)
	n.data = append(append(n.data, key...), value...)
}

// cut makes the page of a level, of all but the last elements, which stay for the next one.
func (t *tree) cut(level, stay int) {
	n := t.levels[level]
	count, size := len(n.elements)-stay, len(n.data)
	for _, e := range n.elements[count:] {
		size -= e.key + e.value
	}
	id := t.page(kind(level), n.elements[:count], n.data[:size])
	first := n.data[:n.elements[0].key]
	t.add(level+1, element{key: len(first), ref: id}, first, nil)
	n.elements = append(n.elements[:0], n.elements[count:]...)
	n.data = append(n.data[:0], n.data[size:]...)
}

func kind(level int) uint16 {
	if level == 0 {
		return boltLeaf
	}
	return boltBranch
}

func (n *node) size() int { return boltPageHeader + boltElement*len(n.elements) + len(n.data) }

// page makes a page, with those that it overflows to, and returns its number.
func (t *tree) page(kind uint16, elements []element, data []byte) (id uint64) {
	size := boltPageHeader + boltElement*len(elements) + len(data)
	pages := (size + t.pageSize - 1) / t.pageSize
	id = t.next
	t.next += uint64(pages)
	t.out = appendPage(t.out, id, kind, pages, elements, data)
	t.out = append(t.out, make([]byte, pages*t.pageSize-size)...)
	return id
}

func appendPage(b []byte, id uint64, kind uint16, pages int, elements []element, data []byte) []byte {
	ne := binary.NativeEndian
	b = ne.AppendUint64(b, id)
	b = ne.AppendUint16(b, kind)
	b = ne.AppendUint16(b, uint16(len(elements)))
	b = ne.AppendUint32(b, uint32(pages-1))
	pos := boltElement * len(elements) // from an element to its key
	for _, e := range elements {
		if kind == boltBranch {
			b = ne.AppendUint32(b, uint32(pos))
			b = ne.AppendUint32(b, uint32(e.key))
			b = ne.AppendUint64(b, e.ref)
		} else {
			b = ne.AppendUint32(b, uint32(e.ref))
			b = ne.AppendUint32(b, uint32(pos))
			b = ne.AppendUint32(b, uint32(e.key))
			b = ne.AppendUint32(b, uint32(e.value))
		}
		pos += e.key + e.value - boltElement
	}
	return append(b, data...)
}

// end makes the pages that still grow, and those that a file has beside: the list of free pages, and the page of the buckets, of which only
// that of the records has anything. It returns the meta pages, which come first in the file.
func (t *tree) end() (metas []byte) {
	var records uint64
	if len(t.levels) == 0 {
		records = t.page(boltLeaf, nil, nil)
	}
	for level := 0; level < len(t.levels); level++ {
		if level+1 < len(t.levels) {
			t.cut(level, 0)
			continue
		}
		top := t.levels[level]
		records = t.page(kind(level), top.elements, top.data)
	}
	free := t.page(boltFreelist, nil, nil)

	ne := binary.NativeEndian
	empty := appendPage(make([]byte, boltBucketLen), 0, boltLeaf, 1, nil, nil) // a bucket that is a page within the value
	var root node
	for _, b := range []struct{ name, value []byte }{
		{bucketLocal, empty},
		{bucketMeta, empty},
		{bucketRecords, ne.AppendUint64(ne.AppendUint64(nil, records), 0)},
	} {
		root.elements = append(root.elements, element{len(b.name), len(b.value), boltBucket})
		root.data = append(append(root.data, b.name...), b.value...)
	}
	buckets := t.page(boltLeaf, root.elements, root.data)

	for id := range uint64(2) { // two alike
		page := appendPage(nil, id, boltMeta, 1, nil, nil)
		m := ne.AppendUint32(nil, boltMagic)
		m = ne.AppendUint32(m, boltVersion)
		m = ne.AppendUint32(m, uint32(t.pageSize))
		m = ne.AppendUint32(m, 0)
		for _, x := range []uint64{buckets, 0, free, t.next, id} { // root, sequence, list of free pages, high water, transaction
			m = ne.AppendUint64(m, x)
		}
		sum := fnv.New64a()
		sum.Write(m)
		m = ne.AppendUint64(m, sum.Sum64())
		page = append(page, m...)
		metas = append(append(metas, page...), make([]byte, t.pageSize-len(page))...)
	}
	return metas
}
