package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// startCrashing starts a node that kills itself at a crash point.
func (c *cluster) startCrashing(bin string, nd *node, point string) {
	c.t.Helper()
	nd.process = launchBinary(c.t, bin, []string{"LIMITD_FAILPOINT=" + point}, c.dir, nd.id, nd.args...)
}

// died waits until the node has killed itself.
func died(t *testing.T, nd *node, point string) {
	t.Helper()
	if code := nd.wait(20 * time.Second); code != -1 {
		t.Fatalf("at %s %s ended with code %d, not by its crash point:\n%s", point, nd.id, code, tail(nd.out.String(), 20))
	}
}

// TestACrashWhileASnapshotIsWrittenLosesNothing: at each step of a snapshot, and
// of saving one, the node dies right after admissions were answered.
func TestACrashWhileASnapshotIsWrittenLosesNothing(t *testing.T) {
	t.Parallel()
	points := []string{"commit.begin", "commit.put", "commit.done", "save.written", "save.synced", "save.renamed"}
	if testing.Short() {
		points = []string{"commit.put", "commit.done"}
	}
	crashWhileSaving(t, points)
}

// TestACrashWhileALargeSnapshotIsWrittenLosesNothing: the same of a snapshot that is
// made as a new file.
func TestACrashWhileALargeSnapshotIsWrittenLosesNothing(t *testing.T) {
	t.Parallel()
	points := []string{"rebuild.added", "rebuild.begin", "rebuild.batch", "rebuild.built", "rebuild.synced", "rebuild.renamed", "rebuild.dirsynced", "rebuild.swapped", "rebuild.done"}
	if testing.Short() {
		points = []string{"rebuild.built", "rebuild.renamed"}
	}
	crashWhileSaving(t, points, "--snapshot-portion", "1")
}

func crashWhileSaving(t *testing.T, points []string, args ...string) {
	t.Helper()
	bin := buildWith(t, "failpoint")
	c := newCluster(t, 1, "")
	nd := c.nodes[0]
	nd.args = append(nd.args, args...)
	const limit = 1_000_000
	var all tally
	for _, point := range points {
		c.startCrashing(bin, nd, point)
		c.awaitDecides(nd)
		for range 50 {
			all.call(nd.r, "k", limit)
		}
		if err := nd.r.Do(context.Background(), "RL.SNAPSHOT", "SAVE").Err(); err == nil {
			t.Fatalf("a snapshot was saved past the crash point %s", point)
		}
		died(t, nd, point)
		c.start(nd)
		c.awaitDecides(nd)
		checkCount(t, nd.r, "k", limit, all)
		nd.terminate()
	}
}

// TestACrashWhileASnapshotIsInstalledLosesNothing: a follower that is far behind
// gets the leader's snapshot and dies at each step of putting it in place.
func TestACrashWhileASnapshotIsInstalledLosesNothing(t *testing.T) {
	t.Parallel()
	bin := buildWith(t, "failpoint")
	points := []string{"install.begin", "install.batch", "install.built", "install.synced", "install.swapped", "install.hooked"}
	if testing.Short() {
		points = []string{"install.built", "install.swapped"}
	}
	c := newCluster(t, 3, "")
	const kept = 100 // entries of the log behind a snapshot
	for _, nd := range c.nodes {
		nd.args = append(nd.args, "--snapshot-every", strconv.Itoa(kept))
	}
	c.startAll()
	leader := c.leader()
	victim := c.others(leader)[0]
	const limit = 1_000_000
	var all tally
	all.call(leader.r, "k", limit)
	c.awaitSameHash(c.nodes...)
	victim.terminate()

	// One entry per call, more of them than the log keeps behind a snapshot.
	eventually(t, time.Minute, "entries", func() bool {
		for range 100 {
			all.call(leader.r, "k", limit)
		}
		return all.allowed > 5*kept
	})
	for _, nd := range c.others(victim) { // either may lead
		if err := nd.r.Do(context.Background(), "RL.SNAPSHOT", "SAVE").Err(); err != nil {
			t.Fatal(err)
		}
	}
	behind := filepath.Join(t.TempDir(), "behind")
	if err := os.CopyFS(behind, os.DirFS(victim.data)); err != nil {
		t.Fatal(err)
	}
	for _, point := range points {
		if err := os.RemoveAll(victim.data); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(victim.data, os.DirFS(behind)); err != nil {
			t.Fatal(err)
		}
		c.startCrashing(bin, victim, point)
		died(t, victim, point)
		c.start(victim)
		c.awaitDecides(victim)
		all.call(leader.r, "k", limit)
		c.awaitSameHash(c.nodes...)
		victim.terminate()
	}
	c.start(victim)
	c.awaitDecides(victim)
	checkCount(t, victim.r, "k", limit, all)
}
