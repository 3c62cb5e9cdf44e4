//go:build mutant

package snapshot

import (
	"testing"

	"limitd/mutant"
)

func TestDefectOfTheIndexShows(t *testing.T) {
	mutant.Choose("snapshot-without-last-entry")
	t.Cleanup(func() { mutant.Choose("") })
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 7, 50, rec("k", "v", 100))
	if m, ok := s.Meta(); !ok || m.Index != 8 || m.Last != 7 {
		t.Errorf("the file of a snapshot at 7 says %+v", m)
	}
}
