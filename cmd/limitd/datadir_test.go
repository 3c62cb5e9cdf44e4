package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
