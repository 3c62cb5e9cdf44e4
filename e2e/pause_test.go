package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestPausedNodesComeBackWithoutHarm stops the process of a node in its tracks
// (as a suspended machine or a long stall does), lets the others go on, and lets
// it wake up in the middle of what it was doing.
func TestPausedNodesComeBackWithoutHarm(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	c := startCluster(t, 3)
	for round := range rounds {
		limit := int64(1_000_000)
		if round >= rounds/2 {
			limit = 300 // it is reached: an admission too many would show as one
		}
		key := fmt.Sprintf("paused:%d", round)
		paused := c.leader()
		if round%3 == 2 {
			paused = c.others(paused)[0]
		}
		others := c.others(paused)
		l := startLoad(t, key, limit, 8, others[0].resp, others[1].resp)
		beside := startLoad(t, key, limit, 2, paused.resp) // these wait with it
		eventually(t, 20*time.Second, "answers before the pause", func() bool { return l.answers() > 100 })
		if err := paused.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		before := l.answers()
		eventually(t, 20*time.Second, "answers of the others", func() bool { return l.answers() > before+300 })
		if err := paused.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		before = beside.answers()
		eventually(t, 20*time.Second, "answers of the node that was paused", func() bool { return beside.answers() > before+50 })
		beside.end()
		l.end()
		all := l.sum()
		all.add(beside.sum())
		t.Logf("round %d: %v", round, all)
		if len(all.strange) > 0 {
			t.Errorf("round %d: %v", round, all)
		}
		checkCount(t, others[0].r, key, limit, all)
		c.awaitSameHash(c.nodes...)
	}
}
