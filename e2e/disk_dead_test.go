package e2e

import (
	"net"
	"testing"
	"time"
)

// TestDiskThatDoesNotComeBackEndsTheNode: of five nodes a follower's disk and then
// the leader's stall for good, nearly. Nobody is held up by the first, nor for long by
// the second. What either has in flight must not land later, so both stop when
// raft.disk_stall is over; then nobody waits for a process that the disk still holds.
func TestDiskThatDoesNotComeBackEndsTheNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED in the short form: disks that stall for longer than every other limit of time")
	}
	const longStall, diskStall = 40 * time.Second, 20 * time.Second // longer than any other limit of time
	c, disks := newClusterOnDisks(t, 5, "[raft]\ndisk_stall = \"20s\"")
	c.startAll()
	leader := c.leader()
	follower := c.others(leader)[0]
	var others []*node
	for _, nd := range c.others(leader) {
		if nd != follower {
			others = append(others, nd)
		}
	}

	tr := startTraffic(t, 1, keysOf("follower"), c.nodes...)
	followerOver := time.After(longStall)
	thawFollower := disks[follower].freeze()
	<-time.After(2 * stall)
	tr.check(leader)
	unhindered(t, tr)

	tr = startTraffic(t, 1, keysOf("leader"), others...)
	beside := startTraffic(t, 1, keysOf("stalled"), leader, follower)
	leaderOver, began := time.After(longStall), time.Now()
	thawLeader := disks[leader].freeze()
	tr.flows("while two disks stall")
	for _, nd := range []*node{follower, leader} {
		eventually(t, diskStall+15*time.Second, nd.id+" lets its clients go", func() bool {
			conn, err := net.Dial("tcp", nd.resp)
			if err == nil {
				conn.Close()
			}
			return err != nil
		})
	}
	if waited := time.Since(began); waited < diskStall {
		t.Errorf("%s stopped after %v, raft.disk_stall is %v", leader.id, waited, diskStall)
	}
	tr.flows("without the two nodes")
	<-followerOver
	thawFollower()
	<-leaderOver
	thawLeader()
	for _, nd := range []*node{follower, leader} {
		stopsItself(t, nd, "raft.disk_stall", walDir)
	}
	c.startAll()
	beside.flows("through the nodes whose disks had stalled")
	beside.check(others[0])
	tr.check(leader)
	c.awaitSameHash(c.nodes...)
	soonReplaced(t, tr)
}
