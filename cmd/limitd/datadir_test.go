package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"limitd/cluster"
)

func TestNodeIDIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first, err := nodeID(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^n-[0-9a-f]{6}$`).MatchString(first) {
		t.Errorf("new id %q", first)
	}
	for _, asked := range []string{"", first} {
		if again, err := nodeID(dir, asked); err != nil || again != first {
			t.Errorf("asked for %q: got %q, %v; want %q", asked, again, err, first)
		}
	}
}

func TestDataOfAnotherNodeAreRefused(t *testing.T) {
	dir := t.TempDir()
	if id, err := nodeID(dir, "east"); err != nil || id != "east" {
		t.Fatal(id, err)
	}
	_, err := nodeID(dir, "west")
	if err == nil || !strings.Contains(err.Error(), "belongs to node east") {
		t.Errorf("got %v", err)
	}
}

// TestADirectoryMadeWithAFileKeepsItsID: started by flags later, it must not get
// another id, under which nothing would start it any more.
func TestADirectoryMadeWithAFileKeepsItsID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n1")
	n, err := cluster.Open(cluster.Config{ID: "n1", Members: []cluster.Member{{ID: "n1", Peer: freeAddress(t)}}, DataDir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	for _, asked := range []string{"", "n1"} {
		if id, err := nodeID(dir, asked); err != nil || id != "n1" {
			t.Errorf("asked for %q: %q, %v", asked, id, err)
		}
	}
	if _, err := nodeID(dir, "n2"); err == nil || !strings.Contains(err.Error(), "belongs to node n1") {
		t.Errorf("asked for n2: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "identity"), []byte("limitd-identity 1\nn1-"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := nodeID(dir, ""); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "identity")) {
		t.Errorf("a damaged identity: %q, %v", id, err)
	}
	if id, err := nodeID(dir, "n1"); err != nil || id != "n1" {
		t.Errorf("a damaged identity, asked for n1: %q, %v", id, err)
	}
	if err := os.Remove(filepath.Join(dir, "identity")); err != nil {
		t.Fatal(err)
	}
	if id, err := nodeID(dir, ""); err == nil || !strings.Contains(err.Error(), "say --node") {
		t.Errorf("a lost identity: %q, %v", id, err)
	}
	if _, err := os.Stat(filepath.Join(dir, nodeIDFile)); err == nil {
		t.Error("a second note of the id was made")
	}
}

func TestDamagedNodeIDIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, nodeIDFile)
	for _, text := range []string{"", "\x00\x00\x00", "a b", strings.Repeat("x", 33)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := nodeID(dir, ""); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q was read as %q, %v", text, id, err)
		}
	}
}
