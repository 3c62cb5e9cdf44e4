package cluster

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// segmentsIn are the segments in the directory of a wal, by name.
func segmentsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := dirContents(t, filepath.Join(dir, walName))
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasSuffix(name, ".wal") })
	return all
}

// The next append does not wait until what was cut off is removed, and closing does.
func TestSegmentsAreRemovedBesideTheWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, w := smallWal(t, dir)
	for i := uint64(1); i <= 900; i += 3 {
		mustStore(t, s, entries(i, i+2))
	}
	before := segmentsIn(t, dir)
	w.deletes.turn.Lock() // a removal that takes long
	if err := s.DeleteRange(1, 800); err != nil {
		t.Fatal(err)
	}
	mustStore(t, s, entries(901, 903))
	wants(t, s, 801, 903)
	if now := segmentsIn(t, dir); len(now) < len(before) {
		t.Errorf("%d of %d segments are there, though nobody could remove one", len(now), len(before))
	}
	w.deletes.turn.Unlock()
	w.Close()
	after := segmentsIn(t, dir)
	if len(after) > len(before)/2 {
		t.Errorf("%d of %d segments are left", len(after), len(before))
	}

	// After a crash some may be there again. They are nobody's, and go.
	for name, text := range before {
		if _, ok := after[name]; !ok {
			if err := os.WriteFile(filepath.Join(dir, walName, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, w = smallWal(t, dir)
	wants(t, s, 801, 903)
	if err := s.scan(); err != nil {
		t.Error(err)
	}
	mustStore(t, s, entries(904, 906))
	wants(t, s, 801, 906)
	w.Close()
	for name := range segmentsIn(t, dir) {
		if _, ok := after[name]; !ok && before[name] != "" {
			t.Errorf("%s came back and stays", name)
		}
	}
	s, w = smallWal(t, dir)
	wants(t, s, 801, 906)
	w.Close()
}
