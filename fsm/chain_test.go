package fsm

import (
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// Two nodes that saw the same batches agree at every index both know, whatever raft entries the one or the other did not see.
func TestHashesAgreeBetweenNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := New(nil), New(nil)
		at := map[uint64]uint64{0: 0} // index -> chain once all up to it are applied
		top := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "entries") {
			gap := rapid.SampledFrom([]uint64{1, 1, 1, 2, 30, 255, 256, 257, 1000, 20000}).Draw(t, "gap")
			chain := a.State().Chain
			for i := top + 1; i < top+gap; i++ {
				at[i] = chain
			}
			top += gap
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0: // a configuration that only one is told of, as after a restart behind it
				a.StoreConfiguration(top, raft.Configuration{})
			case 1: // void
				l := logOf(top, Turn{a.State().Last, 2, 1, 1})
				a.Apply(l)
				b.Apply(l)
			default:
				l := logOf(top, Turn{a.State().Last, 1, 1, 1})
				a.Apply(l)
				b.Apply(l)
			}
			at[top] = a.State().Chain
		}
		for _, f := range []*FSM{a, b} {
			h := f.Hashes()
			if n := len(h); n > pointsKept+1 || h[n-1] != (HashPoint{f.State().Applied, f.State().Chain}) {
				t.Fatalf("%d points, %+v", n, h[n-1])
			}
			want := f.Applied()/256*256 + 256
			for i := len(h) - 1; i >= 0; i-- {
				if h[i].Hash != at[h[i].Index] {
					t.Fatalf("index %d: %x, want %x", h[i].Index, h[i].Hash, at[h[i].Index])
				}
				if h[i].Index%256 == 0 && h[i].Index > 0 {
					if want -= 256; h[i].Index != want {
						t.Fatalf("point %d, want %d", h[i].Index, want)
					}
				}
			}
			if want > 256 && f.Applied()/256-want/256 < pointsKept-1 {
				t.Fatalf("oldest point %d of %d", want, f.Applied())
			}
		}
	})
}

func TestChainTellsOrderIndexAndContent(t *testing.T) {
	base := link(1, 2, []byte("ab"))
	for _, other := range []uint64{link(2, 2, []byte("ab")), link(1, 3, []byte("ab")), link(1, 2, []byte("aB")), link(1, 2, []byte("ab\x00"))} {
		if other == base {
			t.Error("two histories have one hash")
		}
	}
}
