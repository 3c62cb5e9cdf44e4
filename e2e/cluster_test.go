package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// node is one member of a test cluster; its process changes with each start.
type node struct {
	*process
	id   string
	resp string // address for clients
	peer string // address for other nodes
	data string
	args []string // of its process
	r    client   // of this node; it connects again when it has to
}

// cluster is nodes of one configuration file.
type cluster struct {
	t     testing.TB
	dir   string
	file  string
	nodes []*node
}

// newCluster writes a configuration for n nodes with the shipped defaults; settings is added to it.
func newCluster(t testing.TB, n int, settings string) *cluster {
	t.Helper()
	return newClusterIn(t, t.TempDir(), n, settings)
}

// newClusterIn keeps the nodes' data in dir.
func newClusterIn(t testing.TB, dir string, n int, settings string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "cluster.toml")
	ports := reservePorts(t, 2*n)
	var b strings.Builder
	b.WriteString(settings + "\n")
	for i := range n {
		nd := &node{id: fmt.Sprintf("n%d", i+1), resp: addr(ports[2*i]), peer: addr(ports[2*i+1]), r: dial(t, addr(ports[2*i]))}
		nd.data = filepath.Join(dir, nd.id)
		nd.args = []string{"serve", "--config", c.file, "--node", nd.id}
		c.nodes = append(c.nodes, nd)
		fmt.Fprintf(&b, "[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n", nd.id, nd.resp, nd.peer, nd.data)
	}
	if err := os.WriteFile(c.file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// startCluster starts n nodes and waits until each of them decides.
func startCluster(t testing.TB, n int) *cluster {
	t.Helper()
	c := newCluster(t, n, "")
	c.startAll()
	return c
}

func (c *cluster) start(nd *node) {
	c.t.Helper()
	nd.process = launch(c.t, c.dir, nd.id, nd.args...)
}

// startAll starts the nodes that do not run, and waits until all decide.
func (c *cluster) startAll() {
	c.t.Helper()
	for _, nd := range c.nodes {
		if nd.process == nil || !nd.running() {
			c.start(nd)
		}
	}
	c.awaitAllDecide()
}

func (c *cluster) awaitAllDecide() {
	c.t.Helper()
	for _, nd := range c.nodes {
		c.awaitDecides(nd)
	}
}

// awaitDecides waits until the node answers a peek, which needs a leader.
func (c *cluster) awaitDecides(nd *node) {
	c.t.Helper()
	var err error
	eventually(c.t, 20*time.Second, nd.id+" decides", func() bool {
		if !nd.running() {
			c.t.Fatalf("%s has ended: %s", nd.id, tail(nd.out.String(), 20))
		}
		_, err = nd.r.throttle("limitd:ready", 0, 1, 1, 0)
		return err == nil
	})
}

// leader waits until a running node says that it leads, and returns it.
func (c *cluster) leader() *node {
	c.t.Helper()
	var found *node
	eventually(c.t, 20*time.Second, "a leader", func() bool {
		for _, nd := range c.nodes {
			if nd.running() && nd.r.info()["raft_role"] == "leader" {
				found = nd
				return true
			}
		}
		return false
	})
	return found
}

// others are the nodes except nd.
func (c *cluster) others(nd *node) []*node {
	var out []*node
	for _, o := range c.nodes {
		if o != nd {
			out = append(out, o)
		}
	}
	return out
}

// awaitSameHash waits until the nodes agree on the chain hash at the newest
// index that the first of them has applied, and fails if they ever differ at an
// index that they share.
func (c *cluster) awaitSameHash(nodes ...*node) {
	c.t.Helper()
	eventually(c.t, 20*time.Second, "the same RL.HASH on all nodes at a common newest index", func() bool {
		first, newest := nodes[0].r.hashes()
		if newest == 0 {
			return false
		}
		for _, nd := range nodes[1:] {
			got, _ := nd.r.hashes()
			for index, hash := range first {
				if other, ok := got[index]; ok && other != hash {
					c.t.Fatalf("%s and %s differ at index %d: %s, %s", nodes[0].id, nd.id, index, hash, other)
				}
			}
			if _, ok := got[newest]; !ok {
				return false
			}
		}
		return true
	})
}
