package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestClusterGrowsFromThreeToFiveAndBack(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	three := c.nodes
	put(t, c.leader(), "before")
	n4, n5 := c.newcomer("n4"), c.newcomer("n5")
	c.start(n4)
	c.start(n5)
	c.awaitVoters(c.nodes...)
	put(t, c.leader(), "five")
	for _, tn := range c.nodes {
		eventually(t, tn.cfg.ID+" to have all", func() bool { return has(tn, "before") && has(tn, "five") })
	}
	eventually(t, "n4 to forget that it joins", func() bool { return n4.joining.wants() == joinsNot })
	if rows := n4.Nodes(); len(rows) != 5 {
		t.Errorf("n4 sees %+v", rows)
	}
	eventually(t, "n1 to know where n5 serves clients", func() bool {
		for _, r := range three[0].Nodes() {
			if r.ID == "n5" && r.Resp == "resp-of-n5" {
				return true
			}
		}
		return false
	})

	c.change(three[1], Change{Op: ChangeRemove, ID: "n5"})
	n5.awaitRemoved()
	n5.Close()
	c.change(n4, Change{Op: ChangeLeave})
	n4.awaitRemoved()
	n4.Close()
	c.awaitVoters(three...)
	put(t, c.leader(n4, n5), "three")
}

// A cluster of one needs no file to grow.
func TestSingleNodeGrowsToThree(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n1 := c.leader()
	put(t, n1, "alone")
	n2, n3 := c.newcomer("n2"), c.newcomer("n3")
	c.start(n2)
	c.awaitVoters(n1, n2)
	c.start(n3)
	c.awaitVoters(n1, n2, n3)
	n1.Close()
	put(t, c.leader(n1), "without the first")
	c.start(n1)
	eventually(t, "the first to have what was written without it", func() bool { return has(n1, "without the first") })
}

func TestLeaderIsRemovedByWhoeverIsAsked(t *testing.T) {
	for _, asked := range []string{"leader", "follower"} {
		t.Run(asked, func(t *testing.T) {
			t.Parallel()
			c := startTestCluster(t, 3)
			old := c.leader()
			rest := c.others(old)
			put(t, old, "before")
			of := old
			if asked == "follower" {
				of = rest[0]
				of.AwaitLeader(testPatience)
			}
			c.change(of, Change{Op: ChangeRemove, ID: old.cfg.ID})
			old.awaitRemoved()
			c.awaitVoters(rest...)
			put(t, c.leader(old), "after")
			c.change(rest[0], Change{Op: ChangeRemove, ID: old.cfg.ID}) // made already
			c.change(rest[0], Change{Op: ChangeRemove, ID: old.raftID})
		})
	}
}

func TestLeaderIsDemotedAndPromotedAgain(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	old := c.leader()
	rest := c.others(old)
	c.change(old, Change{Op: ChangeDemote, ID: old.cfg.ID})
	c.awaitMembers(c.nodes, rest...)
	if old.Leading() || old.role() != "nonvoter" {
		t.Errorf("it is a %s", old.role())
	}
	c.refuses(rest[0], Change{Op: ChangeTransfer, ID: old.cfg.ID}, old.cfg.ID, "no vote")
	c.change(old, Change{Op: ChangeDemote, ID: old.raftID}) // made already
	c.restart(old)
	put(t, c.leader(), "with two voters")
	eventually(t, "the non-voter to follow", func() bool { return has(old, "with two voters") })
	time.Sleep(2 * checkEvery) // in which a member that wants its vote gets it
	c.awaitMembers(c.nodes, rest...)

	c.change(old, Change{Op: ChangePromote, ID: old.cfg.ID})
	c.awaitVoters(c.nodes...)
	c.change(old, Change{Op: ChangePromote, ID: old.cfg.ID}) // made already
}

func TestChangesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	for _, asked := range c.nodes {
		asked.AwaitLeader(testPatience)
		for _, op := range []ChangeOp{ChangePromote, ChangeDemote, ChangeRemove} {
			c.refuses(asked, Change{Op: op, ID: "n9"}, "n9 is no member")
			c.refuses(asked, Change{Op: op, ID: "n1-ffffffff"}, "n1-ffffffff is no member", c.nodes[0].raftID)
			c.refuses(asked, Change{Op: op}, "no node is named")
		}
		c.refuses(asked, Change{Op: "grow", ID: "n1"}, "unknown change")
		c.refuses(asked, Change{Op: ChangeTransfer, ID: "n9"}, "n9 is no member")
		for _, peer := range []string{"", "127.0.0.1", "127.0.0.1:0", ":7380"} {
			c.refuses(asked, Change{Op: ChangeJoin, ID: "n4", Peer: peer}, "host:port")
		}
		c.refuses(asked, Change{Op: ChangeJoin, ID: "n4", Peer: "192.0.2.1:7380"}, "peers.insecure")
		c.refuses(asked, Change{Op: ChangeJoin, ID: "n4", Peer: l.cfg.self().Peer}, l.cfg.self().Peer, "limitd cluster remove "+l.cfg.ID)
		c.refuses(asked, Change{Op: ChangeJoin, ID: "n2-ffffffff", Peer: freeAddr(t)}, "n2 is a member already", c.nodes[1].raftID, "limitd cluster remove n2")

		err := asked.Change(Change{Op: ChangeJoin, ID: "n4", Peer: freeAddr(t)})
		if !errors.Is(err, ErrNotNow) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("nobody listens there, and that may change: %v", err)
		}
	}
	c.awaitVoters(c.nodes...)
}

func TestChangesThatWouldLoseTheQuorum(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	dead, up := c.others(l)[0], c.others(l)[1]
	dead.Close()
	eventually(t, "the leader to miss it", func() bool { return !l.healthy(dead.serverID()) })
	for _, asked := range []*testNode{l, up} {
		for _, goes := range []*testNode{l, up} {
			for op, doing := range map[ChangeOp]string{ChangeRemove: "removing", ChangeDemote: "demoting"} {
				c.refuses(asked, Change{Op: op, ID: goes.cfg.ID}, "after "+doing+" "+goes.cfg.ID+" there are 2 voters and 2 must answer",
					dead.cfg.ID, "first", "FORCE", "nothing is admitted")
			}
		}
		c.refuses(asked, Change{Op: ChangeLeave}, "after removing "+asked.cfg.ID)
	}
	c.change(up, Change{Op: ChangeRemove, ID: dead.cfg.ID}) // the way that the words say
	c.awaitVoters(l, up)
	c.change(l, Change{Op: ChangeRemove, ID: up.cfg.ID})
	up.awaitRemoved()
	for _, force := range []bool{false, true} {
		for _, op := range []ChangeOp{ChangeRemove, ChangeDemote, ChangeLeave} {
			c.refuses(l, Change{Op: op, ID: l.cfg.ID, Force: force}, "the only voter")
		}
	}
	put(t, l, "alone")
	inTouch(t, l)
}

// What is forced is done as soon as it can be, and not before.
func TestForcedChangeWaitsForTheNodeThatIsNeeded(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	dead, up := c.others(l)[0], c.others(l)[1]
	dead.awaitListed()
	up.awaitListed()
	dead.Close()
	eventually(t, "the leader to miss it", func() bool { return !l.healthy(dead.serverID()) })
	done := make(chan error, 1)
	go func() { done <- l.Change(Change{Op: ChangeRemove, ID: up.cfg.ID, Force: true}) }()
	eventually(t, "the change to be in the log", func() bool { return !l.configs.isListed(up.serverID()) })
	eventually(t, "the leader to step down", func() bool { return !l.Leading() })
	if _, o := tryPut(l, "nothing is admitted"); o == 0 {
		t.Error("a batch took effect without a quorum")
	}
	c.start(dead)
	if err := <-done; err != nil {
		t.Errorf("with the node back: %v", err)
	}
	c.awaitVoters(l, dead)
	up.awaitRemoved()
	put(t, c.leader(up), "after")
}
