package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A floor that the disks of these tests can be filled below, and a node still runs.
const (
	floorSetting = "[limits]\nmin_free_disk = \"64MiB\""
	belowFloor   = 32 << 20
)

// TestFullDiskOfAFollowerStopsItAlone: the others go on without a pause, and the
// node is back when there is room and it is started again.
func TestFullDiskOfAFollowerStopsItAlone(t *testing.T) {
	t.Parallel()
	c, disks := newClusterOnDisks(t, 3, withBolt+floorSetting) // a wal has room ahead, and goes on
	c.startAll()
	leader := c.leader()
	term := leader.r.info()["raft_term"]
	full := c.others(leader)[0]
	tr := startTraffic(t, 2, twoKeys, c.others(full)...)
	disks[full].fill(belowFloor)
	eventually(t, 10*time.Second, full.id+" says that its disk is low", func() bool { return full.r.info()["disk_low"] == "1" })
	tr.flows("while one follower has little disk left")
	disks[full].fill(0)
	stopsItself(t, full, logFile, "no space left on device", "free space there")
	tr.flows("without the node whose disk is full")
	c.start(full) // too early
	full.wait(20 * time.Second)
	if last := tail(full.out.String(), 1); !strings.Contains(last, "no space left on device: free space there") {
		t.Errorf("started while its disk is full, its last line is %q", last)
	}
	disks[full].drain()
	c.start(full)
	c.awaitDecides(full)
	tr.flows("with it again")
	tr.check(full)
	c.awaitSameHash(c.nodes...)
	if now := c.leader(); machine.calm(tr.began) && (now != leader || now.r.info()["raft_term"] != term) {
		t.Errorf("one full follower was noticed: led by %s in term %s before, by %s in term %s after", leader.id, term, now.id, now.r.info()["raft_term"])
	}
	decided(t, "with one full follower", tr.sum(), tr.began)
	within(t, "the longest time without an admission", time.Second, tr.gap, tr.began)
}

// TestLeaderWithALowDiskHandsOver to a node that has room: charges go on, and no node
// stops.
func TestLeaderWithALowDiskHandsOver(t *testing.T) {
	t.Parallel()
	c, disks := newClusterOnDisks(t, 3, floorSetting)
	c.startAll()
	leader := c.leader()
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	disks[leader].fill(belowFloor)
	eventually(t, 20*time.Second, "another node leads", func() bool {
		return slices.ContainsFunc(c.others(leader), func(nd *node) bool { return nd.r.info()["raft_role"] == "leader" })
	})
	tr.flows("while the disk of one node is low, which led")
	disks[leader].drain()
	tr.flows("when there is room again")
	tr.check(leader)
	c.awaitSameHash(c.nodes...)
	if !leader.running() {
		t.Errorf("%s has stopped: %s", leader.id, tail(leader.out.String(), 3))
	}
}

// TestLowDisksRefuseChargesUntilThereIsRoom: on both followers, on all, of the leader
// and a follower. Nothing else is refused, and no node stops.
func TestLowDisksRefuseChargesUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	c, disks := newClusterOnDisks(t, 3, floorSetting)
	c.startAll()
	for _, tt := range []struct {
		name string
		low  func(leader *node) []*node
	}{
		{"the leader's and a follower's", func(leader *node) []*node { return []*node{leader, c.others(leader)[0]} }},
		{"the followers'", func(leader *node) []*node { return c.others(leader) }},
		{"all", func(*node) []*node { return c.nodes }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leader := c.leader()
			low := tt.low(leader)
			for _, nd := range c.nodes {
				eventually(t, 20*time.Second, "a limit that is used up, at "+nd.id, func() bool {
					r, err := nd.r.throttle("used:"+tt.name, 0, 1, 3600, 1)
					return err == nil && r[0] == 1
				})
			}
			tr := startTraffic(t, 2, keysOf(tt.name), c.nodes...)
			for _, nd := range low {
				disks[nd].fill(belowFloor)
			}
			for _, nd := range c.nodes {
				eventually(t, 15*time.Second, nd.id+" refuses charges", func() bool {
					_, err := nd.r.throttle("new:"+tt.name, 1_000_000, 1, 3600, 1)
					return code(err) == "OOM"
				})
			}
			before := tr.sum()
			eventually(t, 20*time.Second, "refusals", func() bool { return tr.sum().sure["OOM"] > before.sure["OOM"]+50 })
			if after := tr.sum(); after.allowed > before.allowed {
				t.Errorf("%d calls were charged meanwhile", after.allowed-before.allowed)
			}
			for _, nd := range c.nodes {
				if r, err := nd.r.throttle("used:"+tt.name, 0, 1, 3600, 1); err != nil || r[0] != 1 {
					t.Errorf("%s: a call over its limit is denied as ever, and not %v, %v", nd.id, r, err)
				}
			}
			if n, err := c.nodes[1].r.Del(t.Context(), "used:"+tt.name).Result(); code(err) != "INDOUBT" && (err != nil || n != 1) {
				t.Errorf("a reset, which makes room: %d, %v", n, err)
			}
			for _, nd := range low {
				disks[nd].drain()
			}
			tr.flows("when there is room again")
			tr.check(c.nodes[2])
			c.awaitSameHash(c.nodes...)
			for _, nd := range c.nodes {
				if !nd.running() {
					t.Errorf("%s has stopped: %s", nd.id, tail(nd.out.String(), 3))
				}
			}
		})
	}
}

// TestDisksOfAllFillUpAtOnce, to the last byte and before anybody looks: whether a
// node stops or only refuses depends on who writes first; what was answered stands.
func TestDisksOfAllFillUpAtOnce(t *testing.T) {
	t.Parallel()
	c, disks := newClusterOnDisks(t, 3, "[limits]\nmin_free_disk = \"1MiB\"")
	c.startAll()
	tr := startTraffic(t, 3, twoKeys, c.nodes...)
	for _, nd := range c.nodes {
		disks[nd].fill(0)
	}
	eventually(t, 20*time.Second, "an end of the admissions", func() bool {
		all := tr.sum()
		return all.sure["OOM"] > 0 || all.sure["CLUSTERDOWN"] > 0 || all.sure["no connection"] > 0
	})
	for _, nd := range c.nodes {
		disks[nd].drain()
	}
	before := tr.sum().allowed
	eventually(t, 20*time.Second, "admissions when there is room again", func() bool {
		for _, nd := range c.nodes {
			if !nd.running() {
				stopsItself(t, nd, "no space left on device", "free space there")
				c.start(nd)
			}
		}
		return tr.sum().allowed > before+30
	})
	c.startAll()
	tr.check(c.nodes[0])
	c.awaitSameHash(c.nodes...)
}
