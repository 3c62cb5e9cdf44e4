package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestJoiningFile(t *testing.T) {
	golden, err := os.ReadFile("testdata/joining_v1.golden")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, joiningFile)
	load := func() (*joining, error) {
		j := &joining{}
		return j, j.load(dir)
	}
	j, err := load()
	if err != nil || j.wants() != joinsNot {
		t.Fatalf("no file: %q, %v", j.wants(), err)
	}
	for _, want := range []joinIntent{joinsAsNonVoter, joinsAsVoter} {
		if err := j.set(want); err != nil {
			t.Fatal(err)
		}
		if again, err := load(); err != nil || again.wants() != want {
			t.Fatalf("%q, %v; want %q", again.wants(), err, want)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != string(golden) {
		t.Errorf("%q, %v; the golden file is %q", b, err, golden)
	}
	for i := range golden {
		damaged := append([]byte{}, golden...)
		damaged[i] ^= 4
		if got, err := parseJoining(damaged); !errors.Is(err, errJoining) {
			t.Fatalf("byte %d is wrong: %q, %v", i, got, err)
		}
	}
	if err := os.WriteFile(path, golden[:len(golden)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--join") {
		t.Errorf("a damaged file: %v", err)
	}
	if _, err := parseJoining([]byte("limitd-joining 2\nvoter\n")); err == nil || !strings.Contains(err.Error(), "newer limitd") {
		t.Errorf("a later version: %v", err)
	}
	if err := j.set(joinsNot); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// Of founding a cluster and joining one, what comes first excludes the other.
func TestNodeFoundsOrJoins(t *testing.T) {
	j := &joining{}
	if err := j.load(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := j.set(joinsAsVoter); err != nil {
		t.Fatal(err)
	}
	if j.found() {
		t.Error("a node that joins may found a cluster")
	}
	if err := j.set(joinsNot); err != nil {
		t.Fatal(err)
	}
	if !j.found() {
		t.Error("a node that does not join may not found a cluster")
	}
	if err := j.set(joinsAsVoter); err == nil {
		t.Error("a node that founds a cluster may join another one")
	}
}
