package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNodeWhoseDiskFailsStopsAndSaysWhy: a node that cannot keep what it
// promises stops by itself, the others go on, and it is back when its disk is.
func TestNodeWhoseDiskFailsStopsAndSaysWhy(t *testing.T) {
	t.Parallel()
	const limit = 1_000_000
	d := newDisk(t, "")
	c := newCluster(t, 3, "")
	victim := c.nodes[0]
	start := func() {
		victim.process = launch(t, c.dir, victim.id, "serve", "--config", c.file, "--node", victim.id, "--data-dir", filepath.Join(d.mount, victim.id))
	}
	start()
	for _, nd := range c.others(victim) {
		c.start(nd)
	}
	c.awaitAllDecide()
	var all tally
	admitted := func(nd *node) { // a call that meets the failing leader may be in doubt
		t.Helper()
		before := all.allowed
		eventually(t, 20*time.Second, nd.id+" admits", func() bool {
			all.call(nd.r, "k", limit)
			return all.allowed > before
		})
	}
	for _, nd := range c.nodes {
		admitted(nd)
	}

	d.cut()
	if code := victim.wait(20 * time.Second); code != 3 {
		t.Errorf("the node whose disk failed ended with code %d, want 3", code)
	}
	if last := tail(victim.out.String(), 1); !strings.HasPrefix(last, "limitd: this node has stopped itself: ") {
		t.Errorf("its last line is %q", last)
	}
	for _, nd := range c.others(victim) {
		admitted(nd)
	}

	d.back()
	start()
	c.awaitDecides(victim)
	admitted(victim)
	c.awaitSameHash(c.nodes...)
	checkCount(t, victim.r, "k", limit, all)
	t.Log(all)
}
