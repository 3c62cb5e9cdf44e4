//go:build mutant

package sim

import "testing"

// TestDefectsAreFound runs seeds with each known defect that a simulation can show,
// until one is found to be wrong.
func TestDefectsAreFound(t *testing.T) {
	for _, d := range []struct {
		name  string
		seeds int // within so many
	}{
		{"ack-before-commit", 5},
		{"local-clock-in-apply", 5},
		{"no-clamp-of-t", 5},
		{"last-not-in-snapshot", 5},
		{"snapshot-without-last-entry", 5},
		{"tat-rounded-to-ms", 5},
		{"ge-at-burst-edge", 5},
		{"refund-twice", 5},
		{"indoubt-as-refused", 10},
		{"void-batch-applied", 60},
		{"denial-out-of-touch", 20},
		{"transfer-without-guard", 100},
		{"takeall-partial", 5},
		{"id-not-kept", 5},
		{"refund-id-twice", 5},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Setenv("LIMITD_MUTANT", d.name)
			for i := range d.seeds {
				seed := *first + uint64(i)
				if _, err := runChild(seed); err != nil {
					t.Logf("seed %d: %.600v", seed, err)
					return
				}
			}
			t.Errorf("not found in %d seeds", d.seeds)
		})
	}
}
