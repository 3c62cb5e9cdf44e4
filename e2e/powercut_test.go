package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestThePowerCutOfThisTestLosesWhatWasNotSynced: a cut that lost nothing would
// prove nothing.
func TestThePowerCutOfThisTestLosesWhatWasNotSynced(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "")
	write := func(name string, sync bool) {
		f, err := os.Create(filepath.Join(d.mount, name))
		if err == nil {
			_, err = f.WriteString("kept?")
		}
		if err == nil && sync {
			err = f.Sync()
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("synced", true)
	write("not synced", false)
	d.cut()
	d.back()
	if b, err := os.ReadFile(filepath.Join(d.mount, "synced")); string(b) != "kept?" {
		t.Errorf("what was synced is lost: %q, %v", b, err)
	}
	if b, _ := os.ReadFile(filepath.Join(d.mount, "not synced")); string(b) == "kept?" {
		t.Error("what was not synced survived")
	}
}

// TestPowerCutOfAllNodesKeepsEveryAnsweredAdmission cuts the power of all three
// at once, right after a reply and under load, and does the sum.
func TestPowerCutOfAllNodesKeepsEveryAnsweredAdmission(t *testing.T) {
	t.Parallel()
	powerCuts(t, "")
}

// TestPowerCutOfAllNodesWithBolt is the same with the other log store.
func TestPowerCutOfAllNodesWithBolt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED in the short form: the default log store is")
	}
	powerCuts(t, withBolt)
}

func powerCuts(t *testing.T, settings string) {
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	d := newDisk(t, "")
	c := newClusterIn(t, d.mount, 3, settings+"[limits]\nmin_free_disk = \"16MiB\"")
	c.endings(rounds, func(round int, answers func(int64)) {
		answers(int64(100 + 200*round))
		d.cut()
		for _, nd := range c.nodes {
			nd.kill() // one that met the dead disk may have stopped by itself
		}
		d.back()
	})
}

// endings does the sum over a load on three nodes, again and again. What end does, after
// so many answers as it waits for, ends all of them.
func (c *cluster) endings(rounds int, end func(round int, answers func(least int64))) {
	const limit = int64(1_000_000)
	for round := range rounds {
		c.startAll()
		key := fmt.Sprintf("round:%d", round)
		l := startLoad(c.t, key, limit, 8, c.nodes[0].resp, c.nodes[1].resp, c.nodes[2].resp)
		end(round, func(least int64) {
			eventually(c.t, 20*time.Second, "answers before the end", func() bool { return l.answers() > least })
		})
		l.end()
		c.startAll()
		all := l.sum()
		c.t.Logf("round %d: %v", round, all)
		checkCount(c.t, c.nodes[0].r, key, limit, all)
		c.awaitSameHash(c.nodes...)
	}
}
