package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// peerPortOffset is how far a local node's peer port is from its client port.
const peerPortOffset = 1000

// localConfig describes nodes n1, n2, ... on this machine. Their data
// directories are absolute: the start line of a node works from anywhere.
func localConfig(dir string, nodes, port int) (Config, error) {
	if nodes < 1 || nodes > 9 {
		return Config{}, fmt.Errorf("--nodes %d: a local cluster has 1 to 9 nodes", nodes)
	}
	if port < 1 || port+nodes-1+peerPortOffset > 65535 {
		return Config{}, fmt.Errorf("--port %d: this port, and this port + %d for peers, must be ports for %d nodes", port, peerPortOffset, nodes)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Config{}, fmt.Errorf("--dir %s: %w", dir, err)
	}
	c := DefaultConfig()
	c.Cluster.Name = "local"
	c.Limits.MaxMemory = Memory{Percent: max(c.Limits.MaxMemory.Percent/nodes, 1)} // they share one machine
	for i := range nodes {
		id := fmt.Sprintf("n%d", i+1)
		c.Nodes = append(c.Nodes, NodeConfig{
			ID:   id,
			RESP: loopback(port + i),
			Peer: loopback(port + i + peerPortOffset),
			Data: filepath.Join(abs, id),
		})
	}
	return c, c.Validate()
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// localFile is the configuration file of a local cluster.
func localFile(c Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by `limitd local`. All keys are in cluster.example.toml.\n\n")
	fmt.Fprintf(&b, "[cluster]\nname = %s\n\n[limits]\nmax_memory = %s\n", tomlString(c.Cluster.Name), tomlString(c.Limits.MaxMemory.String()))
	for _, n := range c.Nodes {
		fmt.Fprintf(&b, "\n[[node]]\nid = %s\nresp = %s\npeer = %s\ndata = %s\n",
			tomlString(n.ID), tomlString(n.RESP), tomlString(n.Peer), tomlString(n.Data))
	}
	return b.String()
}

// tomlString quotes s as a TOML basic string.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// keepLocalFile writes the file, or finds it as it would be written. Data of
// another layout are not run under this one: the addresses are part of the
// cluster's replicated configuration.
func keepLocalFile(file, text string) error {
	have, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writeNew(file, text)
	case err != nil:
		return err
	case string(have) != text:
		return fmt.Errorf("%s describes another cluster than --nodes and --port ask for, or was edited: "+
			"give the same flags as before, another --dir, or start its nodes with `limitd serve --config %s --node ID`", file, file)
	}
	return nil
}
