package cluster

import (
	"strings"
	"testing"
	"time"
)

func TestConfigErrorNamesItsKey(t *testing.T) {
	good := func() Config {
		return Config{ID: "n1", DataDir: "data", Members: []Member{{"n1", ":6381", "127.0.0.1:7381"}, {"n2", ":6382", "[::1]:7382"}}}
	}
	if err := good().withDefaults().validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for _, tc := range []struct {
		key    string
		change func(*Config)
	}{
		{"node.data", func(c *Config) { c.DataDir = "" }},
		{"node: no node", func(c *Config) { c.Members = nil }},
		{"node.id: \"n9\"", func(c *Config) { c.ID = "n9" }},
		{"node.id: \"n1\" is listed twice", func(c *Config) { c.Members[1].ID = "n1" }},
		{"node.id: a listed node", func(c *Config) { c.Members[1].ID = "" }},
		{"node.peer: \"127.0.0.1:7381\" is the address of two", func(c *Config) { c.Members[1].Peer = c.Members[0].Peer }},
		{"node.peer of n2: \"nowhere\"", func(c *Config) { c.Members[1].Peer = "nowhere" }},
		{"peers.insecure", func(c *Config) { c.Members[1].Peer = "10.0.0.2:7381" }},
		{"peers.insecure", func(c *Config) { c.Members[1].Peer = "example.com:7381" }},
		{"raft.heartbeat", func(c *Config) { c.Heartbeat = time.Millisecond }},
		{"raft.lease", func(c *Config) { c.Lease = 2 * time.Second }},
		{"raft.election", func(c *Config) { c.Election = 500 * time.Millisecond }},
		{"raft.disk_stall", func(c *Config) { c.DiskStall = 500 * time.Millisecond }},
	} {
		c := good()
		tc.change(&c)
		if err := c.withDefaults().validate(); err == nil || !strings.Contains(err.Error(), tc.key) {
			t.Errorf("want an error that names %s, got %v", tc.key, err)
		}
	}
	c := good()
	c.Members[1].Peer, c.Insecure = "10.0.0.2:7381", true
	if err := c.withDefaults().validate(); err != nil {
		t.Errorf("peers.insecure is set: %v", err)
	}
	c = Config{ID: "x"}
	if err := c.withDefaults().validate(); strings.Count(err.Error(), "\n") != 2-1 {
		t.Errorf("all errors at once, one a line: %v", err)
	}
}
