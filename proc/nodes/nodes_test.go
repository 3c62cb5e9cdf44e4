package nodes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestParseInfo(t *testing.T) {
	got := parseInfo("# Raft\r\nraft_role:leader\r\nraft_leader_addr:127.0.0.1:6381\r\n\r\n# Limiter\r\nallowed:7\r\n")
	if len(got) != 3 || got["raft_role"] != "leader" || got["raft_leader_addr"] != "127.0.0.1:6381" || got["allowed"] != "7" {
		t.Errorf("parseInfo = %v", got)
	}
}

// What was to end a node must not end one of its earlier processes and leave the newest.
func TestANodeIsItsNewestProcess(t *testing.T) {
	c, err := New(Config{Dir: t.TempDir(), Program: script(t, "exec sleep 60")})
	if err != nil {
		t.Fatal(err)
	}
	n := c.Nodes[0]
	for _, end := range []func() error{n.Stop, n.Kill} {
		if err := c.StartNode(n); err != nil {
			t.Fatal(err)
		}
		if err := c.StartNode(n); err == nil || !strings.Contains(err.Error(), "n1 runs already") {
			t.Errorf("a second process of a node: %v", err)
		}
		if err := end(); err != nil || n.Running() {
			t.Errorf("running %v, %v", n.Running(), err)
		}
	}
}

// script is a program that is a line of shell.
func script(t *testing.T, line string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "limitd")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+line+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// A program that takes no node must not be waited for as if it were a slow one.
func TestANodeThatEndsAtOnceIsNotWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	c, err := New(Config{Dir: dir, Program: script(t, `echo "refused: $*" >&2; exit 2`), Settings: "[raft]\n", Args: func(n *Node) []string { return []string{"--of", n.ID} }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Start(t.Context())
	want := regexp.MustCompile("refused: serve --config " + filepath.Join(dir, "cluster.toml") + " --node (n1 --of n1|n2 --of n2|n3 --of n3)")
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("it is told as %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cluster.toml"))
	if err != nil || !strings.HasPrefix(string(text), "[raft]\n[[node]]\nid = \"n1\"\n") || strings.Count(string(text), "[[node]]") != 3 {
		t.Errorf("the configuration is %s (%v)", text, err)
	}
	for _, n := range c.Nodes {
		if c.Other(n) == n {
			t.Errorf("%s is another node than itself", n.ID)
		}
	}
}
