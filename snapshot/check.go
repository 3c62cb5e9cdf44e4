package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"

	"golang.org/x/sys/unix"
)

// The layout of a bbolt file, version 2, in the machine's byte order. A page begins with id(8) flags(2) count(2) overflow(4); a meta
// page goes on with magic(4) version(4) page size(4) flags(4) root(8) sequence(8) freelist(8) high water(8) txid(8) checksum(8).
const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	boltPageHeader = 16
	boltMetaLen    = 64
	boltBucketLen  = 16 // root page, sequence; a small bucket follows as a page of its own if the root is 0
	boltElement    = 16 // branch: pos(4) ksize(4) page(8); leaf: flags(4) pos(4) ksize(4) vsize(4); pos counts from the element
	boltNoFreelist = ^uint64(0)
	boltMaxDepth   = 64

	boltBranch, boltLeaf, boltMeta, boltFreelist = 1, 2, 4, 16 // flags of a page
	boltBucket                                   = 1           // flag of a leaf element
)

// CheckBolt says whether bbolt can open the file at path without harm, and otherwise what is wrong with it: both meta pages, the size,
// and every page that is reachable. It must come before bolt.Open, which panics on pages that are missing or out of shape, in part in a
// goroutine where nobody can recover, and leaves its lock behind when somebody does. It is stricter than bbolt in one point: bbolt
// goes back one transaction, without a word, when the newer meta page fails its checksum. For a database whose transactions were
// acknowledged that is loss, so one bad meta page is damage too; a write that is cut off by a power cut does not tear within the one
// sector that the meta data takes.
//
// Contents are not checked, since bbolt keeps no checksums of them: its users must. Nobody may be writing to the file. Errors wrap
// ErrDamaged, or come from the system: an absent file is os.ErrNotExist, an empty one is damaged.
func CheckBolt(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED) // all of it will be read, here and by bolt, in no order
	st, err := f.Stat()
	if err != nil {
		return err
	}
	c := boltCheck{f: f, path: path, size: st.Size()}
	root, freelist, err := c.metas()
	if err != nil {
		return err
	}
	c.seen = make([]uint64, c.high/64+1)
	c.seen[0] = 3 // the meta pages
	if err := c.tree(root, nil, nil, 0); err != nil {
		return err
	}
	if freelist != boltNoFreelist {
		return c.free(freelist)
	}
	return nil
}

type boltCheck struct {
	f        *os.File
	path     string
	size     int64
	pageSize uint64
	high     uint64                   // pages at and above it are not in use
	seen     []uint64                 // a bit for each page that something refers to
	pages    [boltMaxDepth + 1][]byte // the page that is being looked at on each level
}

func (c *boltCheck) bad(format string, args ...any) error { return damaged(c.path, format, args...) }

// metas checks the meta pages and the size, and returns root page and freelist page of the newer.
func (c *boltCheck) metas() (root, freelist uint64, err error) {
	var newest uint64
	for i := range uint64(2) {
		var b [boltPageHeader + boltMetaLen]byte
		at := int64(i * c.pageSize)
		if _, err := c.f.ReadAt(b[:], at); err != nil {
			return 0, 0, c.bad("it has %d bytes and no meta page %d", c.size, i)
		}
		m := b[boltPageHeader:]
		ne := binary.NativeEndian
		sum := fnv.New64a()
		sum.Write(m[:56])
		size := uint64(ne.Uint32(m[8:]))
		switch {
		case ne.Uint32(m) != boltMagic:
			return 0, 0, c.bad("meta page %d is none: magic %08x", i, ne.Uint32(m))
		case sum.Sum64() != ne.Uint64(m[56:]):
			return 0, 0, c.bad("checksum of meta page %d", i)
		case ne.Uint32(m[4:]) != boltVersion:
			return 0, 0, fmt.Errorf("%s: %w %d of the bbolt file", c.path, ErrVersion, ne.Uint32(m[4:]))
		case size < 1024 || size&(size-1) != 0 || i == 1 && size != c.pageSize:
			return 0, 0, c.bad("meta page %d says that pages have %d bytes", i, size)
		}
		c.pageSize = size
		if txid := ne.Uint64(m[48:]); i == 0 || txid > newest {
			newest = txid
			root, freelist, c.high = ne.Uint64(m[16:]), ne.Uint64(m[32:]), ne.Uint64(m[40:])
		}
	}
	if c.high > uint64(c.size)/c.pageSize {
		return 0, 0, c.bad("it has %d bytes, %d pages of %d bytes are in use: it was cut off", c.size, c.high, c.pageSize)
	}
	return root, freelist, nil
}
