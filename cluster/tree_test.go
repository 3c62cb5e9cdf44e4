package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// treeOf is a file, or all files of a directory, by their paths in it.
func treeOf(t testing.TB, path string) map[string]string {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if fi.IsDir() {
		return dirContents(t, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"": string(b)}
}

// putTree puts files in the place of what is there.
func putTree(t testing.TB, path string, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		to := filepath.Join(path, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// topNames are the names in a data directory, but those of the locks.
func topNames(t testing.TB, dir string) (names []string) {
	t.Helper()
	for name := range dirContents(t, dir) {
		top, _, _ := strings.Cut(name, "/")
		names = append(names, top)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// replacedOf are the files of a node that an offline command makes anew.
func replacedOf(store string) []string {
	names := []string{identityFile, storeFile, logNames[store], snapshotName}
	slices.Sort(names)
	return names
}

// wantReplaced wants the files of a node twice: the new ones in its directory, the old
// ones, if they are given, in backup.
func wantReplaced(t testing.TB, n *testNode, backup string, old map[string]string) {
	t.Helper()
	if got, want := topNames(t, n.cfg.DataDir), append(replacedOf(n.cfg.LogStore), filepath.Base(backup)); !slices.Equal(slices.Sorted(slices.Values(want)), got) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
	saved := dirContents(t, backup)
	if got := topNames(t, backup); !slices.Equal(got, replacedOf(n.cfg.LogStore)) {
		t.Errorf("%s holds %v", backup, got)
	}
	for name, text := range old {
		if saved[name] != text {
			t.Errorf("%s is not in %s as it was", name, backup)
		}
	}
}
