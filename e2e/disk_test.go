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
	const limit = 1000
	d := newPowerDisk(t)
	c := newCluster(t, 3, "")
	victim := c.nodes[0]
	start := func() {
		victim.process = launch(t, c.dir, victim.id, "serve", "--config", c.file, "--node", victim.id, "--data-dir", filepath.Join(d.mount, victim.id))
	}
	start()
	for _, nd := range c.others(victim) {
		c.start(nd)
	}
	for _, nd := range c.nodes {
		c.awaitDecides(nd)
	}
	want := int64(limit)
	take := func(nd *node) {
		t.Helper()
		want--
		if r := nd.r.mustThrottle("k", limit-1, 1, 3600, 1); r[2] != want {
			t.Fatalf("%s: %v, want remaining %d", nd.id, r, want)
		}
	}
	for _, nd := range c.nodes {
		take(nd)
	}

	d.cut()
	if code := victim.wait(20 * time.Second); code != 3 {
		t.Errorf("the node whose disk failed ended with code %d, want 3", code)
	}
	if last := tail(victim.out.String(), 1); !strings.HasPrefix(last, "limitd: this node has stopped itself: ") {
		t.Errorf("its last line is %q", last)
	}
	for _, nd := range c.others(victim) {
		take(nd)
	}

	d.back()
	start()
	c.awaitDecides(victim)
	take(victim)
	c.awaitSameHash(c.nodes...)
}
