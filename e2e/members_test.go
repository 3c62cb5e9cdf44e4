package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every test of this file changes the membership while clients of all nodes call,
// and does the sum.

func TestGrowFromThreeToFiveAndShrinkBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	n4, n5 := c.newcomer("n4", c.nodes[1]), c.newcomer("n5", c.nodes[2])
	tr := startTraffic(t, 1, twoKeys, c.nodes...)
	c.start(n4)
	c.awaitVoters(30*time.Second, c.nodes[:4]...)
	c.start(n5)
	c.awaitVoters(30*time.Second, c.nodes...)
	c.awaitAllDecide()
	tr.flows("with five nodes")
	c.awaitSameHash(c.nodes...)

	// A follower leaves, then the leader.
	var stay []*node
	goes := c.others(c.leader())[0]
	for range 2 {
		c.change(goes, "leave")
		c.ends(goes, 0)
		stay = stay[:0]
		for _, nd := range c.nodes {
			if nd.running() {
				stay = append(stay, nd)
			}
		}
		c.awaitVoters(20*time.Second, stay...)
		tr.flows("after " + goes.id + " left")
		goes = c.leader()
	}
	tr.check(stay[0])
	c.awaitSameHash(stay...)
}

// TestARemovedNodeSaysSo removes the leader, and a follower, at another member.
func TestARemovedNodeSaysSo(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"leader", "follower"} {
		t.Run(role, func(t *testing.T) {
			c := startCluster(t, 3)
			goes := c.leader()
			if role == "follower" {
				goes = c.others(goes)[0]
			}
			stay := c.others(goes)
			tr := startTraffic(t, 2, twoKeys, c.nodes...)
			began := time.Now()
			c.change(stay[0], "remove", goes.id)
			t.Logf("removed in %v", time.Since(began))
			c.ends(goes, 3, "removed")
			c.awaitVoters(10*time.Second, stay...)
			tr.flows("without " + goes.id)

			c.start(goes) // its directory still says that it is a member
			c.ends(goes, 3, "removed")
			tr.check(stay[0])
			c.awaitSameHash(stay...)
		})
	}
}

// TestADeadNodeIsRemovedAndStaysOut: it comes back with all its data, long after.
func TestADeadNodeIsRemovedAndStaysOut(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"leader", "follower"} {
		t.Run(role, func(t *testing.T) {
			c := startCluster(t, 3)
			dead := c.leader()
			if role == "follower" {
				dead = c.others(dead)[0]
			}
			stay := c.others(dead)
			tr := startTraffic(t, 2, twoKeys, c.nodes...)
			dead.kill()
			tr.flows("with a dead node")
			c.change(stay[1], "remove", dead.id)
			c.change(stay[0], "remove", dead.id) // made already
			c.awaitVoters(10*time.Second, stay...)
			tr.flows("without the dead node")
			c.start(dead)
			c.ends(dead, 3, "removed")
			tr.check(stay[0])
			c.awaitSameHash(stay...)
		})
	}
}

// TestAWipedNodeIsNoVoterUntilItHasJoined replaces a disk: the node has forgotten
// what it acknowledged, so its old vote must not count again.
func TestAWipedNodeIsNoVoterUntilItHasJoined(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	wiped := c.others(c.leader())[0]
	stay := c.others(wiped)
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	old := stay[0].r.members()[wiped.id].raftID
	wiped.kill()
	if err := os.RemoveAll(wiped.data); err != nil {
		t.Fatal(err)
	}

	plain := wiped.args
	c.start(wiped)
	c.ends(wiped, 3, "limitd cluster remove "+wiped.id, "--join")
	wiped.args = append(plain, "--join", stay[0].resp)
	c.start(wiped)
	c.ends(wiped, 2, "limitd cluster remove "+wiped.id)
	if got := stay[0].r.members()[wiped.id].raftID; got != old {
		t.Errorf("%s is the member %q, and was %q", wiped.id, got, old)
	}

	c.change(stay[1], "remove", wiped.id)
	c.start(wiped)
	c.awaitVoters(30*time.Second, c.nodes...)
	if got := stay[0].r.members()[wiped.id].raftID; got == old {
		t.Errorf("the wiped node is %s again", old)
	}
	c.awaitDecides(wiped)
	tr.flows("with the new disk")

	// From now on it starts as before.
	wiped.terminate()
	wiped.args = plain
	c.start(wiped)
	c.awaitDecides(wiped)
	c.awaitSameHash(c.nodes...)
	tr.check(wiped)
}

// TestANodeOfAnotherClusterIsRefused: it has admitted calls of its own, which fit nowhere else.
func TestANodeOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	stranger := &cluster{t: t, dir: t.TempDir(), nodes: c.nodes}
	x := stranger.newcomer("x", c.nodes[0])
	joining := x.args
	x.args = joining[:len(joining)-2] // without --join: a cluster of one
	c.start(x)
	c.awaitDecides(x)
	if r := x.r.mustThrottle("tight", 39, 1, 3600, 1); r[2] != 39 {
		t.Fatalf("it is no cluster of its own: %v", r)
	}
	began := time.Now()
	c.refusesChange(c.nodes[1], []string{"cluster"}, "join", "x", x.peer)
	t.Logf("refused after %v", time.Since(began))

	// Its data decides, not the flag.
	x.terminate()
	x.args = joining
	c.start(x)
	eventually(t, 10*time.Second, "x goes on as the cluster that it was", func() bool {
		if !x.running() {
			return true // or it says that this cannot be
		}
		r, err := x.r.throttle("tight", 39, 1, 3600, 0)
		return err == nil && r[2] == 39
	})
	if _, ok := c.nodes[0].r.members()["x"]; ok {
		t.Errorf("a node of another cluster is a member: %v", c.nodes[0].r.members())
	}
	tr.check(c.nodes[2])
	c.awaitSameHash(c.nodes...)
}

// TestChangesThatWouldLoseTheQuorumAreRefused: one of three is dead, so both others are needed.
func TestChangesThatWouldLoseTheQuorumAreRefused(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	dead := c.others(c.leader())[0]
	alive := c.others(dead)
	leader := c.leader()
	follower := alive[0]
	if follower == leader {
		follower = alive[1]
	}
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	dead.kill()
	tr.flows("with a dead node")
	eventually(t, 10*time.Second, "the leader misses the dead node", func() bool { return leader.r.contact(dead.id) > 2*time.Second })
	for _, refused := range []struct {
		asked *node
		verb  []string
	}{
		{leader, []string{"remove", follower.id}},
		{follower, []string{"remove", leader.id}},
		{follower, []string{"demote", leader.id}},
		{follower, []string{"leave"}},
	} {
		c.refusesChange(refused.asked, []string{"wait for " + dead.id + " or remove " + dead.id, "FORCE"}, refused.verb...)
	}
	c.awaitVoters(5*time.Second, alive[0], alive[1], dead)
	tr.flows("after all that was refused")

	// Forced, it is begun, and nothing is agreed until the dead node is back. Then
	// the leader goes on with it, or another one that has not heard of it takes over.
	c.refusesChange(leader, []string{"not known whether this was done"}, "remove", follower.id, "--force")
	c.start(dead)
	eventually(t, 30*time.Second, follower.id+" is removed", func() bool {
		stderr, code := c.verb(dead, "remove", follower.id)
		return code == 0 || strings.Contains(stderr, follower.id+" is no member")
	})
	c.ends(follower, 3, "removed")
	c.awaitVoters(20*time.Second, leader, dead)
	tr.flows("with the node that was dead")

	// Of the last two, one that is up may go; the last one never.
	c.change(dead, "remove", dead.id)
	c.ends(dead, 3, "removed")
	tr.flows("at the last voter")
	for _, force := range []string{"", "--force"} {
		for _, verb := range [][]string{{"remove", leader.id}, {"demote", leader.id}, {"leave"}} {
			if force != "" {
				verb = append(verb, force)
			}
			c.refusesChange(leader, []string{"the only voter"}, verb...)
		}
	}
	tr.check(leader)
}

// TestANonVoterStaysOneUntilItIsPromoted: through a change of the leader, and a restart.
func TestANonVoterStaysOneUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	voters := c.others(nil)
	n4 := c.newcomer("n4", c.nodes[0], "--non-voter")
	tr := startTraffic(t, 1, twoKeys, c.nodes...)
	stays := func(when string) {
		t.Helper()
		c.awaitDecides(n4)
		for began := time.Now(); time.Since(began) < 3*time.Second; { // voters are made once a second
			for _, nd := range c.nodes {
				if nd.r.isVoter("n4") {
					t.Fatalf("n4 has a vote %s, says %s", when, nd.id)
				}
			}
			tr.flows(when)
		}
		if role := n4.r.info()["raft_role"]; role != "nonvoter" {
			t.Fatalf("n4 says %s that it is a %q", when, role)
		}
	}
	c.start(n4)
	stays("though it did not want one")
	leader := c.leader()
	c.change(n4, "transfer")
	eventually(t, 10*time.Second, "another leader", func() bool { return leader.r.info()["raft_role"] == "follower" })
	n4.terminate()
	c.start(n4)
	stays("after another leader, and a restart")
	c.awaitSameHash(c.nodes...)

	c.change(n4, "promote", "n4")
	c.awaitVoters(10*time.Second, c.nodes...)
	c.change(n4, "demote", "n4")
	c.awaitVotersOf(10*time.Second, n4, voters...)
	stays("after it was demoted")
	tr.check(n4)
	c.awaitSameHash(c.nodes...)
}

// TestChangesAreAskedOfAnyNode asks the leader, a follower and a non-voter for the same.
func TestChangesAreAskedOfAnyNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	voters := c.others(nil)
	n4 := c.newcomer("n4", c.nodes[0], "--non-voter")
	tr := startTraffic(t, 1, twoKeys, c.nodes...)
	c.start(n4)
	c.awaitDecides(n4)
	for _, role := range []string{"leader", "follower", "nonvoter"} {
		leader := c.leader()
		asked := leader
		if role == "follower" {
			asked = c.others(leader)[0]
		} else if role == "nonvoter" {
			asked = n4
		}
		goes := leader // the one that it is hardest for, and it comes back
		c.change(asked, "demote", goes.id)
		eventually(t, 10*time.Second, goes.id+" has lost its vote", func() bool {
			return goes.r.info()["raft_role"] == "nonvoter" && !asked.r.isVoter(goes.id)
		})
		c.change(asked, "promote", goes.id)
		c.awaitVotersOf(10*time.Second, asked, voters...)
		eventually(t, 10*time.Second, "the leadership moves, some time after it has moved last", func() bool {
			stderr, code := c.verb(asked, "transfer")
			if code != 0 && !strings.Contains(stderr, "TRYAGAIN") {
				t.Fatalf("transfer at the %s: %s", role, stderr)
			}
			return code == 0
		})
		tr.flows(fmt.Sprintf("after the changes asked of the %s", role))
	}
	tr.check(n4)
	c.awaitSameHash(c.nodes...)
}

// TestANodeJoinsWhileTheLeaderIsKilled: whatever was under way is taken up by the next leader.
func TestANodeJoinsWhileTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	c := startCluster(t, 3)
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	for round := range rounds {
		leader := c.leader()
		through := c.others(leader)[0]
		n := c.newcomer(fmt.Sprintf("n%d", 4+round), through)
		c.start(n)
		switch round % 3 {
		case 0: // it is a non-voter
			eventually(t, 10*time.Second, n.id+" is a member", func() bool { return through.r.members()[n.id].raftID != "" })
		case 1: // it is there
			eventually(t, 10*time.Second, n.id+" has made its directory", func() bool {
				_, err := os.Stat(n.data)
				return err == nil
			})
		case 2: // and dies, too
			eventually(t, 10*time.Second, n.id+" is a member", func() bool { return through.r.members()[n.id].raftID != "" })
			n.kill()
			c.start(n)
		}
		leader.kill()
		tr.flows("after the leader was killed")
		c.start(leader)
		c.awaitVoters(30*time.Second, c.nodes...)
		c.change(through, "remove", n.id)
		c.ends(n, 3, "removed")
		c.nodes = c.nodes[:3]
	}
	tr.check(c.nodes[0])
	c.awaitSameHash(c.nodes...)
}

// TestAPausedNodeThatWasRemovedLearnsIt: nobody sends it the configuration any more.
func TestAPausedNodeThatWasRemovedLearnsIt(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	paused := c.leader()
	stay := c.others(paused)
	tr := startTraffic(t, 2, twoKeys, stay...)
	if err := paused.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tr.flows("without the paused leader")
	c.change(stay[0], "remove", paused.id)
	if err := paused.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.ends(paused, 3, "removed")
	tr.flows("without the removed node")
	tr.check(stay[0])
	c.awaitSameHash(stay...)
}
