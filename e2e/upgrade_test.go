package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"
)

// The newest versions of the entry that this build and the next one read.
const (
	thisEntry = 2
	nextEntry = 3
)

// startBuild starts a node with another build of limitd.
func (c *cluster) startBuild(bin string, nd *node) {
	c.t.Helper()
	nd.process = launchBinary(c.t, bin, nil, c.dir, nd.id, nd.args...)
}

// writesEntry is the version in which the node would write entries as the leader; 0 if it does not say.
func (c client) writesEntry() int64 {
	flat, _ := c.Do(context.Background(), "RL.CLUSTER", "STATUS").Slice()
	if i := slices.Index(flat, any("writes_entry")); i >= 0 {
		return flat[i+1].(int64)
	}
	return 0
}

// hasHeardAll says whether the node knows of every other one what it has applied, which is in the same status as what it reads.
func (c client) hasHeardAll() bool {
	rows, _ := c.Do(context.Background(), "RL.CLUSTER", "NODES").Slice()
	for _, row := range rows {
		flat := row.([]any)
		if i := slices.Index(flat, any("applied")); flat[i+1] == int64(0) {
			return false
		}
	}
	return len(rows) > 0
}

// awaitMore waits until so many more calls were decided.
func (l *load) awaitMore(t testing.TB, n int64, when string) {
	t.Helper()
	before := l.answers()
	eventually(t, 20*time.Second, "answers "+when, func() bool { return l.answers() >= before+n })
}

// TestRollingUpgradeUnderLoad takes three nodes from one release to the next, under
// load. The next one has another format of everything that nodes exchange. What the
// last old node does not read is not written while it is there; then it is. A node
// that goes back after that cannot read its log, and says so; the others go on.
func TestRollingUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 1_000_000
	next := buildWith(t, "nextformat")
	c := startCluster(t, 3)
	began := time.Now()
	l := startLoad(t, "upgraded", limit, 4, c.nodes[0].resp, c.nodes[1].resp, c.nodes[2].resp)
	first, last := c.nodes[0], c.nodes[2]
	for _, nd := range c.nodes {
		l.awaitMore(t, 200, "before "+nd.id+" is upgraded")
		if nd == last {
			c.wroteOld(l, first, last)
		}
		nd.terminate()
		l.awaitMore(t, 200, "while "+nd.id+" is upgraded")
		c.startBuild(next, nd)
		c.awaitDecides(nd)
	}
	eventually(t, 10*time.Second, "the next version of the entry", func() bool { return c.leader().r.writesEntry() == nextEntry })
	l.awaitMore(t, 200, "after the upgrade")
	c.awaitSameHash(c.nodes...)

	victim := c.others(c.leader())[0]
	victim.terminate()
	l.awaitMore(t, 200, "in the new format")
	unread := regexp.MustCompile(fmt.Sprintf(`this node has stopped itself: .*entry \d+ of the log: unknown entry version %d, this limitd reads versions up to %d: .*start this node with the limitd that the other nodes run`,
		nextEntry, thisEntry))
	c.refusesOld(victim, unread) // by what the leader sends, or by what is in its log
	c.refusesOld(victim, unread)
	l.awaitMore(t, 200, "after the downgraded node has stopped")
	for _, nd := range c.others(victim) {
		if !nd.running() {
			t.Errorf("%s has stopped too: %s", nd.id, tail(nd.out.String(), 5))
		}
	}
	c.startBuild(next, victim)
	c.awaitDecides(victim)
	if !testing.Short() {
		c.checkSnapshotOfNextRelease(next, victim)
	}

	l.end()
	all := l.sum()
	t.Log(all)
	undoubted(t, "after an upgrade", all, began)
	if all.broken > 0 || len(all.strange) > 0 || all.denied > 0 {
		t.Errorf("an upgrade left calls without an answer: %v", all)
	}
	if left := victim.r.mustThrottle("upgraded", limit-1, 1, 3600, 0)[2]; left > limit-all.allowed || left < limit-all.allowed-all.inDoubt {
		t.Errorf("%d left, want %d: calls were charged and not answered (%v)", left, limit-all.allowed, all)
	}
	c.awaitSameHash(c.nodes...)
}

// wroteOld has an upgraded node lead, until it has heard what each node reads, and
// checks that it writes what the old one reads. If it did not, the old one would stop.
func (c *cluster) wroteOld(l *load, upgraded, old *node) {
	c.t.Helper()
	eventually(c.t, 20*time.Second, upgraded.id+" leads", func() bool {
		if upgraded.r.info()["raft_role"] == "leader" {
			return true
		}
		upgraded.r.Do(context.Background(), "RL.CLUSTER", "TRANSFER", upgraded.id)
		return false
	})
	eventually(c.t, 10*time.Second, upgraded.id+" has heard of all nodes", upgraded.r.hasHeardAll)
	l.awaitMore(c.t, 500, "under an upgraded leader")
	if v := upgraded.r.writesEntry(); v != thisEntry {
		c.t.Errorf("the leader writes version %d while %s reads up to %d", v, old.id, thisEntry)
	}
	if !old.running() {
		c.t.Errorf("%s has stopped: %s", old.id, tail(old.out.String(), 5))
	}
}

// refusesOld starts a node with the release before the one that wrote its data, and wants it to stop with a message.
func (c *cluster) refusesOld(nd *node, message *regexp.Regexp) {
	c.t.Helper()
	c.start(nd)
	if code := nd.wait(20 * time.Second); code != 3 || !message.MatchString(nd.out.String()) {
		c.t.Errorf("the downgraded %s ended with code %d; it should say %q:\n%s", nd.id, code, message, tail(nd.out.String(), 5))
	}
}

// checkSnapshotOfNextRelease: a snapshot that was taken since all nodes read the new
// format, the node's own and a saved one, is refused by the old release too.
func (c *cluster) checkSnapshotOfNextRelease(next string, nd *node) {
	c.t.Helper()
	eventually(c.t, 10*time.Second, nd.id+" knows what all nodes read", func() bool { return nd.r.writesEntry() == nextEntry })
	saved, err := nd.r.Do(context.Background(), "RL.SNAPSHOT", "SAVE").Text()
	if err != nil {
		c.t.Fatal(err)
	}
	if out, err := exec.Command(next, "snapshot", "inspect", saved).CombinedOutput(); err != nil {
		c.t.Errorf("the release that saved it: %v\n%s", err, out)
	}
	out, err := exec.Command(tools.limitd, "snapshot", "inspect", saved).CombinedOutput()
	if err == nil || !regexp.MustCompile(`snapshot stream: unknown format version 2, this limitd reads versions up to 1`).Match(out) {
		c.t.Errorf("the release before: %v\n%s", err, out)
	}
	nd.terminate()
	c.refusesOld(nd, regexp.MustCompile(`this node has stopped itself: .*snapshot\.db: unknown format version 2, this limitd reads versions up to 1`))
	c.startBuild(next, nd)
	c.awaitDecides(nd)
}
