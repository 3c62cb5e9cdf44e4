package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestKillOfTheLeaderUnderLoadNeverOveradmits kills the leader while many
// requests are in flight, again and again, and does the sum.
func TestKillOfTheLeaderUnderLoadNeverOveradmits(t *testing.T) {
	t.Parallel()
	rounds, perNode := 6, 16
	if testing.Short() {
		rounds = 1
	}
	c := startCluster(t, 3)
	for round := range rounds {
		// The second half of the rounds reaches the limit, so that an admission
		// too many would show as one.
		limit := int64(1_000_000)
		if round >= rounds/2 {
			limit = 500
		}
		key := fmt.Sprintf("round:%d", round)
		leader := c.leader()
		others := c.others(leader)
		l := startLoad(t, key, limit, perNode, leader.resp, others[0].resp, others[1].resp)
		eventually(t, 20*time.Second, "answers before the kill", func() bool { return l.answers() > 200 })
		leader.kill()
		before := l.answers()
		eventually(t, 20*time.Second, "answers after the kill", func() bool { return l.answers() > before+300 })
		byNode := l.end()
		all := l.sum()
		t.Logf("round %d: %v", round, all)
		for _, o := range others {
			if got := byNode[o.resp]; got.broken > 0 || len(got.strange) > 0 {
				t.Errorf("%s lives, so each call must be answered, by a reply, TRYAGAIN, CLUSTERDOWN or INDOUBT: %v", o.id, got)
			}
		}
		checkCount(t, others[0].r, key, limit, all)
		if limit == 500 && all.allowed+all.inDoubt+all.broken < limit {
			t.Errorf("round %d never reached the limit: %v", round, all)
		}
		c.start(leader)
		c.awaitDecides(leader)
		c.awaitSameHash(c.nodes...)
	}
}

// TestLostMajorityIsSaidAndNeverLooksLikeALimit asks a lonely node about a full bucket.
func TestLostMajorityIsSaidAndNeverLooksLikeALimit(t *testing.T) {
	t.Parallel()
	const limit, requestTimeout = 1000, time.Second
	c := startCluster(t, 3)
	for _, survivor := range []string{"leader", "follower"} {
		t.Run(survivor+" survives", func(t *testing.T) {
			leader := c.leader()
			began, alone := time.Now(), leader
			if survivor == "follower" {
				alone = c.others(leader)[0]
			}
			key := "full:" + survivor
			all := tally{}
			all.call(alone.r, key, limit)
			for _, nd := range c.others(alone) {
				nd.kill()
			}
			// Long enough for the lease to run out and for elections to fail.
			for lost := time.Now(); time.Since(lost) < 5*time.Second; {
				all.call(alone.r, key, limit)
			}
			t.Log(all)
			if all.denied > 0 || all.broken > 0 || len(all.strange) > 0 || all.sure["TRYAGAIN"] > 0 && all.sure["CLUSTERDOWN"] == 0 {
				t.Errorf("without a majority: %v", all)
			}
			if all.allowed > 1 {
				t.Errorf("%d calls allowed without a majority", all.allowed-1)
			}
			if all.sure["CLUSTERDOWN"] == 0 {
				t.Errorf("nobody was told CLUSTERDOWN: %v", all)
			}
			within(t, "the slowest answer", requestTimeout+500*time.Millisecond, all.slowest, began)
			for _, nd := range c.others(alone) {
				c.start(nd)
			}
			c.awaitAllDecide()
			checkCount(t, alone.r, key, limit, all)
		})
	}
}

// TestCountSurvivesKillOfAllNodes kills all three right after an answer.
func TestCountSurvivesKillOfAllNodes(t *testing.T) {
	t.Parallel()
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	const limit = 1000
	c := startCluster(t, 3)
	want := int64(limit)
	for round := range rounds {
		asked := c.nodes[round%3]
		for range 10 {
			want--
			if r := asked.r.mustThrottle("kept", limit-1, 1, 3600, 1); r[2] != want {
				t.Fatalf("round %d: %v, want remaining %d", round, r, want)
			}
		}
		for _, nd := range c.nodes {
			nd.cmd.Process.Kill()
		}
		for _, nd := range c.nodes {
			<-nd.done
		}
		c.startAll()
		if r := c.nodes[(round+1)%3].r.mustThrottle("kept", limit-1, 1, 3600, 0); r[2] != want {
			t.Fatalf("after the kill of all: %v, want remaining %d", r, want)
		}
	}
	c.awaitSameHash(c.nodes...)
}
