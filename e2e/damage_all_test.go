package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const narrow = 40 // a limit that is reached

// The same damage comes over all three nodes at once. Whoever comes back has
// forgotten nothing, and where no majority does, nothing is admitted.
func TestDamageOfAllNodes(t *testing.T) {
	t.Parallel()
	for name, store := range logStores {
		for how, stop := range map[string]func(*process){"stopped": (*process).terminate, "killed": (*process).kill} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && store.settings != "" {
					t.Skip("NOT TESTED in the short form: the default log store is")
				}
				damageAllNodes(t, store, stop)
			})
		}
	}
}

func damageAllNodes(t *testing.T, store logStore, stop func(*process)) {
	c := newCluster(t, 3, cmp.Or(store.settings, "[raft]\n")+"heartbeat = \"400ms\"\nelection = \"400ms\"\nlease = \"400ms\"") // there will be many elections
	c.startAll()
	tr := startTraffic(t, 1, func(r *rand.Rand) (string, int64) {
		if r.IntN(2) == 0 {
			return "narrow", narrow
		}
		return "wide", 1_000_000
	}, c.nodes...)
	for _, nd := range c.nodes { // so that there is a snapshot file to damage
		if _, stderr, code := limitd(t, "snapshot", "save", "--addr", nd.resp); code != 0 {
			t.Fatalf("snapshot save: %s", stderr)
		}
	}
	old := map[*node]files{}
	for _, nd := range c.nodes { // one after the other: the load goes on
		nd.kill()
		old[nd] = readFiles(t, nd.data)
		c.start(nd)
		c.awaitDecides(nd)
		tr.flows("with " + nd.id + " back")
	}
	eventually(t, 20*time.Second, "the narrow limit to be reached", func() bool {
		var one tally
		one.call(c.nodes[0].r, "narrow", narrow)
		tr.note("narrow", narrow, one)
		return one.denied > 0
	})
	for _, nd := range c.nodes {
		stop(nd.process)
	}
	tr.end()
	whole := map[*node]files{}
	for _, nd := range c.nodes {
		whole[nd] = readFiles(t, nd.data)
	}

	outcomes := map[string]int{}
	for i, d := range store.damages(t, whole[c.nodes[0]], old[c.nodes[0]]) { // their files have the same names
		if testing.Short() && i%4 > 0 {
			continue
		}
		for _, nd := range c.nodes {
			whole[nd].write(t, nd.data)
			d.on(t, nd.data, old[nd])
			c.start(nd)
		}
		back := c.whoComesBack(d)
		outcomes[fmt.Sprintf("%s: %d of 3 back", d.file, len(back))]++
		if len(back) >= 2 {
			tr.checkAt(back[0])
			if d.refused {
				t.Errorf("%v: %d nodes were taken for whole", d, len(back))
			}
		}
		for _, nd := range c.nodes {
			if nd.running() {
				nd.kill()
			}
		}
	}
	t.Log(outcomes)

	// The files are whole again, and so is the cluster.
	for _, nd := range c.nodes {
		whole[nd].write(t, nd.data)
		c.start(nd)
	}
	c.awaitAllDecide()
	c.awaitSameHash(c.nodes...)
	tr.check(c.nodes[0])
}

// whoComesBack waits until every node has refused, or enough have that nobody can
// decide, and returns those that decide. A node that runs alone must not.
func (c *cluster) whoComesBack(d damage) (back []*node) {
	c.t.Helper()
	eventually(c.t, 20*time.Second, fmt.Sprintf("%v: all nodes refuse or decide", d), func() bool {
		back = nil
		waiting := 0
		for _, nd := range c.nodes {
			if !nd.running() {
				continue
			}
			if r, err := nd.r.throttle("narrow", narrow-1, 1, 3600, 1); err == nil { // its limit is reached
				back = append(back, nd)
				if r[0] == 0 {
					c.t.Fatalf("%v: %s admits one too many", d, nd.id)
				}
			} else {
				waiting++
			}
		}
		return waiting == 0 || waiting == 1 && len(back) == 0
	})
	for _, nd := range c.nodes {
		if !nd.running() {
			checkRefusal(nd, d)
		}
	}
	if len(back) == 1 {
		c.t.Errorf("%v: %s decides alone", d, back[0].id)
	}
	return back
}

// checkAt does the sum for each key at the node asked, once the clients have ended.
func (tr *traffic) checkAt(asked *node) {
	tr.t.Helper()
	for key, one := range tr.tallies {
		checkCount(tr.t, asked.r, key, tr.limits[key], *one)
	}
}
