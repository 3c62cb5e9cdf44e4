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

// TestPowerCutOfAllNodesThatKeepAWal is the same with the other log store.
func TestPowerCutOfAllNodesThatKeepAWal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED in the short form: the default log store is")
	}
	powerCuts(t, withWal)
}

func powerCuts(t *testing.T, settings string) {
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	d := newDisk(t, "")
	c := newClusterIn(t, d.mount, 3, settings+"[limits]\nmin_free_disk = \"16MiB\"")
	for _, nd := range c.nodes {
		c.start(nd)
	}
	const limit = int64(1_000_000)
	for round := range rounds {
		for _, nd := range c.nodes {
			c.awaitDecides(nd)
		}
		key := fmt.Sprintf("round:%d", round)
		l := startLoad(t, key, limit, 8, c.nodes[0].resp, c.nodes[1].resp, c.nodes[2].resp)
		eventually(t, 20*time.Second, "answers before the cut", func() bool { return l.answers() > int64(100+200*round) })
		d.cut()
		for _, nd := range c.nodes {
			nd.cmd.Process.Kill() // a node that met the dead disk may have stopped by itself
			<-nd.done
		}
		l.end()
		d.back()
		for _, nd := range c.nodes {
			c.start(nd)
		}
		for _, nd := range c.nodes {
			c.awaitDecides(nd)
		}
		all := l.sum()
		t.Logf("round %d: %v", round, all)
		checkCount(t, c.nodes[0].r, key, limit, all)
		c.awaitSameHash(c.nodes...)
	}
}
