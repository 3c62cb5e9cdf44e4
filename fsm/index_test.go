package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check fails unless the slots are sorted, none is before its home or behind a gap, and the last is empty.
func (x *index) check(t *rapid.T) {
	n, tag := 0, uint32(0)
	for i, s := range x.slots {
		if s.ref == 0 {
			continue
		}
		n++
		home := x.home(s.tag)
		if s.tag < tag || home > i || home < i && x.slots[i-1].ref == 0 {
			t.Fatalf("slot %d: tag %x after %x, home %d", i, s.tag, tag, home)
		}
		tag = s.tag
	}
	if n != x.n || x.slots[len(x.slots)-1].ref != 0 || n*8 > x.homes*7 {
		t.Fatalf("%d slots, n is %d, homes %d", n, x.n, x.homes)
	}
}

func TestIndexStaysSortedAndReachable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		in := map[slot]bool{}
		gen := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(1<<32-3, 1<<32-1), rapid.Uint32Range(0, 2))
		next := uint32(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch {
			case len(in) > 0 && rapid.IntRange(0, 2).Draw(t, "step") == 0:
				all := make([]slot, 0, len(in))
				for s := range in {
					all = append(all, s)
				}
				slices.SortFunc(all, func(a, b slot) int { return int(a.ref) - int(b.ref) })
				s := rapid.SampledFrom(all).Draw(t, "remove")
				i := x.slotOf(s.tag, s.ref)
				if x.slots[i] != s {
					t.Fatalf("slot %d is %v, not %v", i, x.slots[i], s)
				}
				x.remove(i)
				delete(in, s)
			case len(in) > 0 && rapid.IntRange(0, 30).Draw(t, "resize") == 0:
				x.resize(max(firstHomes, len(in)*8/7+1))
			default:
				next++
				s := slot{gen.Draw(t, "tag"), next}
				x.insert(s.tag, s.ref)
				in[s] = true
			}
			x.check(t)
			for s := range in {
				if i := x.seek(s.tag); x.slots[i].tag != s.tag || i > 0 && x.slots[i-1].ref != 0 && x.slots[i-1].tag >= s.tag {
					t.Fatalf("seek %x: slot %d", s.tag, i)
				}
			}
		}
	})
}
