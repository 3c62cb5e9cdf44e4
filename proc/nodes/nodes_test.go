package nodes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseInfo(t *testing.T) {
	got := parseInfo("# Raft\r\nraft_role:leader\r\nraft_leader_addr:127.0.0.1:6381\r\n\r\n# Limiter\r\nallowed:7\r\n")
	if len(got) != 3 || got["raft_role"] != "leader" || got["raft_leader_addr"] != "127.0.0.1:6381" || got["allowed"] != "7" {
		t.Errorf("parseInfo = %v", got)
	}
}

// A program that takes no node must not be waited for as if it were a slow one.
func TestANodeThatEndsAtOnceIsNotWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	program := filepath.Join(t.TempDir(), "limitd")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"refused: $*\" >&2\nexit 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Dir: dir, Program: program, Settings: "[raft]\n", Args: func(n *Node) []string { return []string{"--of", n.ID} }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "refused: serve --config "+filepath.Join(dir, "cluster.toml")+" --node n1 --of n1") {
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
