package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSizesReadBackAsTheyPrint(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "1B": 1, "1023": 1023, "64KiB": 64 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30, "-1": -1} {
		var s, again Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q = %d, %v; want %d", text, s, err, want)
		}
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%d prints as %q and reads back as %d, %v", s, s, again, err)
		}
	}
	for _, text := range []string{"", "KiB", "1.5MiB", "1 MiB", "1kb", "0x10", "9223372036854775808", "8589934592GiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %d", text, s)
		}
	}
}

func TestMemoryShareIsOfTheContainerNotTheMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		file, text string
		want       int64
	}{
		"no limit file": {"other", "1", 77},
		"v2 unlimited":  {"memory.max", "max\n", 77},
		"v2":            {"memory.max", "1048576\n", 1 << 20},
		"v1":            {"memory/memory.limit_in_bytes", "2097152\n", 2 << 20},
	} {
		root := t.TempDir()
		file := filepath.Join(root, tc.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(tc.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := containerMemory(root, 77); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestHalfOfTheMemoryIsLessThanAllOfIt(t *testing.T) {
	half, err := Memory{Percent: 50}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Memory{Percent: 100}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if half <= 0 || half*2 > all || half*2 < all-200 {
		t.Errorf("half of %d is %d", all, half)
	}
}
