package cluster

import "testing"

// Of four voters one was away when the fourth got its vote, and when the second
// was removed. Of the three that are left the leader dies: the two others have never
// heard of each other as voters.
func TestNodeThatLagsBehindVotesForAMemberThatIsNewToIt(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	leader := c.leader()
	behind, second := c.others(leader)[0], c.others(leader)[1]
	put(t, leader, "before")
	eventually(t, "the one that will lag to have a log", func() bool { return has(behind, "before") })
	behind.Close()

	fresh := c.newcomer("n4")
	c.start(fresh)
	eventually(t, "n4 to have a vote", func() bool { return fresh.voters() == 4 && fresh.role() == "follower" })
	c.change(leader, Change{Op: ChangeRemove, ID: second.cfg.ID})
	put(t, leader, "after")
	eventually(t, "n4 to have all", func() bool { return has(fresh, "after") })
	second.Close()
	leader.Close()

	c.start(behind)
	c.leader(leader, second)
	eventually(t, "the one that lagged to have all", func() bool { return has(behind, "after") })
}
