package fsm

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestClassesHoldWhatTheyPromise(t *testing.T) {
	for u := 2; u <= maxShared; u++ {
		r := roundUp(u)
		if r < u || r > u+u/8+1 || r > maxShared || class(r) >= classes {
			t.Fatalf("%d units are rounded to %d, class %d", u, r, class(r))
		}
		if roundUp(r) != r || class(u) > class(r) || u < r && class(u) == class(r) {
			t.Fatalf("a free block of %d units could serve %d (classes %d, %d)", u, r, class(u), class(r))
		}
	}
}

// Blocks do not overlap, keep their content while others come and go, and every page can be walked.
func TestArenaKeepsBlocksApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := arena{open: -1}
		content := map[uint32]byte{}
		size := map[uint32]int{}
		sizes := rapid.OneOf(rapid.IntRange(blkName+1, 600), rapid.IntRange(blkName+1, 40<<10))
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(content) > 0 && rapid.IntRange(0, 2).Draw(t, "free") == 0 {
				refs := make([]uint32, 0, len(content))
				for r := range content {
					refs = append(refs, r)
				}
				slices.Sort(refs)
				r := rapid.SampledFrom(refs).Draw(t, "ref")
				a.release(r)
				delete(content, r)
				continue
			}
			n := sizes.Draw(t, "size")
			r := a.alloc(n)
			if _, taken := content[r]; taken || a.room(a.at(r)) < n || !a.fits(a.at(r), n) {
				t.Fatalf("block %d of %d bytes for %d", r, a.room(a.at(r)), n)
			}
			b := a.at(r)
			b[blkFlags] = 0
			for j := blkExpiry; j < n; j++ {
				b[j] = byte(i)
			}
			content[r], size[r] = byte(i), n
		}
		idle, held := int64(0), int64(0)
		for p := range a.pages {
			held += int64(len(a.pages[p]))
			a.walk(p, func(r uint32, b block) {
				c, ok := content[r]
				if !ok || !bytes.Equal(b[blkExpiry:size[r]], bytes.Repeat([]byte{c}, size[r]-blkExpiry)) {
					t.Fatalf("block %d: known %v, content changed", r, ok)
				}
				delete(content, r)
				idle -= int64(a.room(b))
			})
			if p == a.open {
				idle += int64(a.used) * unit
			} else {
				idle += int64(len(a.pages[p]))
			}
		}
		if len(content) > 0 || held != a.held || idle != a.idle {
			t.Fatalf("%d blocks not walked, %d bytes held of %d, idle %d of %d", len(content), held, a.held, idle, a.idle)
		}
	})
}
