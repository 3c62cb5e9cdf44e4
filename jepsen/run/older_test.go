package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is one with these commits, oldest first: each is what files hold from then
// on. Its commits are named c0, c1, …
func repository(t *testing.T, commits ...map[string]string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: needs git")
	}
	dir, in := t.TempDir(), strings.Builder{}
	for i, files := range commits {
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\ncommitter test <test@example.com> %d +0000\ndata 0\n", i+1, i)
		for name, text := range files {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
		fmt.Fprintf(&in, "reset refs/tags/c%d\nfrom :%d\n", i, i+1)
	}
	if _, err := git(dir, "init", "-q", "-b", "main"); err != nil {
		t.Fatal(err)
	}
	load := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	load.Stdin = strings.NewReader(in.String())
	if said, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return dir
}

const (
	serve  = "cmd/limitd/serve.go"
	format = "trace/FORMAT.md"
	knows  = `package main; var flags = []string{"trace", "snapshot-every"}; const setting = "id_ttl"`
)

// The default is the newest commit that makes a difference: neither a test nor a text does.
func TestTheOlderCommitMakesAnotherBinary(t *testing.T) {
	patterns := []string{":(top,glob)cmd/limitd/*.go", ":(top,glob)fsm/*.go", ":(top,exclude,glob)**/*_test.go"}
	base := map[string]string{serve: knows, format: "Version 1; of today", "fsm/fsm.go": "package fsm"}
	for _, c := range []struct {
		name, asked string
		commits     []map[string]string
		want, says  string
	}{
		{"the one before", "", []map[string]string{base, {"fsm/fsm.go": "package fsm // 2"}}, "c0", ""},
		{"behind a test and a text", "", []map[string]string{base, {"fsm/a.go": "package fsm"}, {"fsm/a.go": "package fsm // 2"}, {"fsm/a_test.go": "package fsm"}, {"fsm/FORMAT.md": "new"}}, "c1", ""},
		{"not one that was taken back", "", []map[string]string{base, {"fsm/fsm.go": "package fsm // 1"}, {"fsm/fsm.go": "package fsm // 2"}, {"fsm/fsm.go": "package fsm // 1"}}, "c2", ""},
		{"not the same one", "", []map[string]string{{}, base, {"fsm/fsm.go": "package fsm // 1"}, {"fsm/fsm.go": "package fsm"}}, "c2", ""},
		{"the one asked for", "c0", []map[string]string{base, {"fsm/fsm.go": "package fsm // 2"}, {"fsm/fsm.go": "package fsm // 3"}}, "c0", ""},
		{"HEAD, if asked for", "HEAD", []map[string]string{base}, "c0", ""},
		{"one that is not there", "c9", []map[string]string{base}, "", "c9"},
		{"no flags for a lab", "", []map[string]string{{serve: "package main", format: "Version 1"}, {serve: knows}}, "", "does not know serve --trace"},
		{"traces of another version", "", []map[string]string{base, {format: "Version 2; of today", "fsm/fsm.go": "package fsm // 2"}}, "", `of "Version 1", those of today of "Version 2"`},
		{"nothing before", "", []map[string]string{base}, "", "git knows none before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := repository(t, c.commits...)
			got, err := olderCommit(dir, c.asked, patterns)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if want, _ := git(dir, "rev-parse", c.want); err != nil || got != want {
				t.Errorf("%q, %v, want %s, which is %q", got, err, c.want, want)
			}
		})
	}
}

func TestWithoutAnOlderBinaryUpgradesAreSkippedUnlessItWasAskedFor(t *testing.T) {
	t.Setenv("PATH", "/nowhere") // neither git nor go
	var o Options
	if err := o.FindOlder(t.TempDir()); err != nil || o.NoPrevious == "" || o.Previous != "" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, o := range []Options{{From: "HEAD"}, {Previous: "/nowhere/limitd"}} {
		if err := o.FindOlder(t.TempDir()); err == nil {
			t.Errorf("%+v is taken for one without an older binary", o)
		}
	}
}

func TestABinaryThatDoesNotKnowTheFlagsIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limitd")
	for script, ok := range map[string]bool{"exit 0": true, "echo unknown flag: --trace >&2; exit 1": false} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := usable(file); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "unknown flag") {
			t.Errorf("%q: %v", script, err)
		}
	}
}

func TestOnlyUpgradesWantAnOlderBinary(t *testing.T) {
	for names, want := range map[string]bool{"all": true, "pause,downgrade": true, "pause,rolling-restart": false, "none": false} {
		if got := (Options{Nemeses: names}).WantsOlder(); got != want {
			t.Errorf("%s: %v", names, got)
		}
	}
}
