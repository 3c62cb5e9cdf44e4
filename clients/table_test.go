package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTableSaysWhatFailed(t *testing.T) {
	m := &matrix{rows: []*row{
		{client: &client{name: "good"}, version: "1.0", resp: "3", resends: true, seconds: []float64{2.5, 0, 1.5}},
		{client: &client{name: "bad", noUser: true}, version: "2.0", resp: "2",
			failed: map[cell]error{pipeline: errors.New("999 allowed"), kill: errors.New("lost one")}, seconds: []float64{1}},
		{client: &client{name: "load", generator: true}, version: "3.0", resp: "2"},
	}}
	want := []string{
		"| good | 1.0 | RESP3; password, user | yes | yes | yes | yes | 1.5 | yes |",
		"| bad | 2.0 | RESP2; password | **no** | yes | yes | **no** |  | no |",
		"| load | 3.0 | RESP2; password, user | yes | not applicable | not applicable | not applicable | not applicable | not applicable |",
	}
	if got := strings.Split(m.table(), "\n")[2:]; strings.Join(got, "\n") != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if got := strings.Join(m.failures(), "\n"); got != "bad, pipeline: 999 allowed\nbad, leader kill: lost one" {
		t.Errorf("failures:\n%s", got)
	}
}

func TestWhatIsAroundTheTableStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clients.md")
	text := "# Clients\n\n" + tableBegin + "\nold\n" + tableEnd + "\n\nMore.\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := writeTable(file, "| new |\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Clients\n\n" + tableBegin + "\n\n| new |\n\n" + tableEnd + "\n\nMore.\n"; string(got) != want {
		t.Errorf("got %q", got)
	}
	if err := os.WriteFile(file, []byte("# Clients\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeTable(file, ""); err == nil {
		t.Error("a file without the markers is written")
	}
}
