package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestLocalFileReadsBackAsItWasMeant(t *testing.T) {
	for _, dir := range []string{"plain", `with "quotes" and \ backslash`, "tab\tand\nnewline", "é"} {
		c, err := localConfig(dir, 3, 6381)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseConfig("cluster.toml", []byte(localFile(c)))
		if err != nil {
			t.Fatalf("%q: %v", dir, err)
		}
		if !reflect.DeepEqual(again, c) {
			t.Errorf("%q:\nwrote %+v\nread  %+v", dir, c, again)
		}
	}
}

func TestLocalFlagsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		nodes, port int
		want        string
	}{
		{0, 6381, "--nodes 0"}, {10, 6381, "--nodes 10"}, {3, 0, "--port 0"}, {3, 64534, "--port 64534"}, {-1, 6381, "--nodes -1"},
	} {
		if _, err := localConfig("d", tc.nodes, tc.port); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d nodes from port %d: %v", tc.nodes, tc.port, err)
		}
	}
	if _, err := localConfig("d", 3, 64533); err != nil {
		t.Errorf("the last three ports: %v", err)
	}
}

func TestDataOfAnotherLayoutAreNotRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.toml")
	if err := keepLocalFile(file, "a"); err != nil {
		t.Fatal(err)
	}
	if err := keepLocalFile(file, "a"); err != nil {
		t.Errorf("the same layout again: %v", err)
	}
	if err := keepLocalFile(file, "b"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("another layout: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "a" {
		t.Errorf("the file was changed to %q, %v", text, err)
	}
}

func TestShellWordsSurviveTheShell(t *testing.T) {
	for in, want := range map[string]string{
		"./bin/limitd": "./bin/limitd", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
	} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}
