package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func upTo(index uint64) func(uint64) bool {
	return func(commit uint64) bool { return commit <= index }
}

func TestArrivalCountsOnlyOnceItIsApplied(t *testing.T) {
	var a arrivals
	if got := a.newest(upTo(100)); got != never {
		t.Fatalf("nothing arrived, and it is proven at %d", got)
	}
	a.push(arrival{10, 5}, upTo(4))
	if got := a.newest(upTo(4)); got != never {
		t.Errorf("commit index 5 is not applied, and it counts at %d", got)
	}
	if got := a.newest(upTo(5)); got != 10 {
		t.Errorf("commit index 5 is applied and counts at %d, want 10", got)
	}
	a.push(arrival{20, 9}, upTo(5))
	if got := a.newest(upTo(8)); got != 10 {
		t.Errorf("with 9 outstanding it counts at %d, want 10", got)
	}
	a.push(arrival{30, 9}, upTo(8))
	if got := a.newest(upTo(9)); got != 30 {
		t.Errorf("the same commit index again counts at %d, want 30", got)
	}
}

// The log forgets arrivals when many wait. What it says must never be newer than
// the truth, and never fall back to nothing while applying goes on.
func TestArrivalsAgainstAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a arrivals
		var all []arrival
		applied, commit := uint64(0), uint64(0)
		for now := int64(1); now < 200; now++ {
			if rapid.Bool().Draw(t, "arrives") {
				commit += rapid.Uint64Range(0, 3).Draw(t, "step")
				all = append(all, arrival{now, commit})
				a.push(arrival{now, commit}, upTo(applied))
			}
			applied = min(applied+rapid.Uint64Range(0, 2).Draw(t, "applied"), commit)
			truth := int64(never)
			for _, x := range slices.Backward(all) {
				if x.commit <= applied {
					truth = x.boot
					break
				}
			}
			got := a.newest(upTo(applied))
			if got > truth {
				t.Fatalf("proven at %d, the truth is %d", got, truth)
			}
			if waiting := commit - applied; waiting == 0 && got != truth {
				t.Fatalf("all is applied; proven at %d, the truth is %d", got, truth)
			}
		}
	})
}
