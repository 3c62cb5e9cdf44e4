package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// keysOf is twoKeys under names of their own, for traffic beside other traffic.
func keysOf(name string) pick {
	return func(r *rand.Rand) (string, int64) {
		key, limit := twoKeys(r)
		return name + ":" + key, limit
	}
}

const (
	stall    = 5 * time.Second // shorter than raft.disk_stall
	replaced = 4 * time.Second // a leader is, within this time
)

// TestLeaderWhoseDiskStallsForSecondsIsReplaced: its heartbeats would go on, so it
// must hand over; when the disk is back the node follows.
func TestLeaderWhoseDiskStallsForSecondsIsReplaced(t *testing.T) {
	t.Parallel()
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	c, disks := newClusterOnDisks(t, 3, "")
	c.startAll()
	var gaps []time.Duration
	began := time.Now()
	for round := range rounds {
		stalled := c.leader()
		others := c.others(stalled)
		tr := startTraffic(t, 3, keysOf(fmt.Sprint("others:", round)), others...)
		beside := startTraffic(t, 2, keysOf(fmt.Sprint("stalled:", round)), stalled)
		over := time.After(stall)
		thaw := disks[stalled].freeze()
		tr.flows("while the leader's disk stalls")
		beside.flows("through the node whose disk stalls")
		<-over
		thaw()
		c.awaitFollows(stalled)
		beside.flows("through the node whose disk has stalled")
		beside.check(others[0])
		tr.check(stalled)
		c.awaitSameHash(c.nodes...)
		gaps = append(gaps, tr.gap)
		if beside.gap >= stall && machine.calm(beside.began) {
			t.Errorf("the clients of %s were served by nobody while its disk stalled", stalled.id)
		}
	}
	slices.Sort(gaps)
	median := gaps[len(gaps)/2]
	t.Logf("the leader's disk stalls for %v: longest time without an admission: median %v of %v", stall, median, gaps)
	within(t, "the median", replaced, median, began)
}

// soonReplaced checks that clients were not without a leader for long.
func soonReplaced(t testing.TB, tr *traffic) {
	t.Helper()
	within(t, "the longest time without an admission", replaced, tr.gap, tr.began)
}

// awaitFollows waits until a running node follows.
func (c *cluster) awaitFollows(nd *node) {
	c.t.Helper()
	eventually(c.t, 20*time.Second, nd.id+" follows", func() bool {
		if !nd.running() {
			c.t.Fatalf("%s has ended: %s", nd.id, tail(nd.out.String(), 3))
		}
		return nd.r.info()["raft_role"] == "follower"
	})
}

// TestFollowerWhoseDiskStallsForSecondsHoldsNobodyUp: neither the others' clients
// nor its own.
func TestFollowerWhoseDiskStallsForSecondsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c, disks := newClusterOnDisks(t, 3, "")
	c.startAll()
	leader := c.leader()
	stalled := c.others(leader)[0]
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	over := time.After(stall)
	thaw := disks[stalled].freeze()
	<-over
	thaw()
	tr.flows("after the stall")
	tr.check(stalled)
	unhindered(t, tr)
	c.awaitFollows(stalled)
	c.awaitSameHash(c.nodes...)
	if c.leader() != leader && machine.calm(tr.began) {
		t.Errorf("%s leads now, and not %s: a follower's disk is no reason", c.leader().id, leader.id)
	}
}

// unhindered checks that clients were never held up.
func unhindered(t testing.TB, tr *traffic) {
	t.Helper()
	all := tr.sum()
	t.Logf("a follower's disk stalls: longest time without an admission %v, slowest call %v", tr.gap, all.slowest)
	within(t, "the longest time without an admission", time.Second, tr.gap, tr.began)
	within(t, "the slowest call", time.Second, all.slowest, tr.began)
	decided(t, "with a follower whose disk stalls", all, tr.began)
}
