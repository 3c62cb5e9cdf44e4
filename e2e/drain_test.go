package e2e

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRollingRestartUnderLoad restarts every node in turn under load, with clients that
// look whether their connection is still good before they send. Every request is
// answered, so that at the end the count is exact: nothing was charged that nobody was
// told. A leader hands over once, and what a follower does moves no leadership: the
// term tells.
func TestRollingRestartUnderLoad(t *testing.T) {
	const limit = 1_000_000
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	c := startCluster(t, 3)
	began := time.Now()
	l := startLoad(t, "drained", limit, 8, c.nodes[0].resp, c.nodes[1].resp, c.nodes[2].resp)
	for range rounds {
		for _, nd := range c.nodes {
			before := l.answers()
			eventually(t, 20*time.Second, "answers before "+nd.id+" stops", func() bool { return l.answers() > before+200 })
			term, starved := c.term(), c.elections(nd)
			leads := c.leader() == nd
			nd.terminate()
			before = l.answers()
			eventually(t, 20*time.Second, "answers while "+nd.id+" is down", func() bool { return l.answers() > before+200 })
			c.start(nd)
			c.awaitDecides(nd)
			most := int64(1) // the leader hands over, once
			if !leads {
				most = c.elections(nd) - starved // on a busy machine one of the others may hear too late from the leader
			}
			if now := c.term(); now > term+most && machine.calm(began) {
				t.Errorf("%s (leader: %v) restarted: the term went from %d to %d, and by %d at most it should", nd.id, leads, term, now, most)
			}
		}
	}
	l.end()
	all := l.sum()
	t.Log(all)
	undoubted(t, "after orderly stops", all, began)
	if len(all.strange) > 0 || all.denied > 0 {
		t.Errorf("calls were answered otherwise: %v", all)
	}
	if all.broken > 0 {
		t.Errorf("%d calls were not answered", all.broken)
	}
	left := c.nodes[0].r.mustThrottle("drained", limit-1, 1, 3600, 0)[2]
	if most := limit - all.allowed; left > most || left < most-all.inDoubt {
		t.Errorf("%d left, want %d: calls were charged and not answered (%v)", left, most, all)
	}
	c.awaitSameHash(c.nodes...)
}

// elections counts those that nodes other than nd began because they heard nothing from the leader.
func (c *cluster) elections(nd *node) (n int64) {
	for _, o := range c.others(nd) {
		n += int64(strings.Count(o.out.String(), "heartbeat timeout reached, starting election"))
	}
	return n
}

// term is the newest one that a running node knows.
func (c *cluster) term() (newest int64) {
	for _, nd := range c.nodes {
		if term, err := strconv.ParseInt(nd.r.info()["raft_term"], 10, 64); err == nil {
			newest = max(newest, term)
		}
	}
	return newest
}

// TestLeaderThatStopsHandsOver measures that nobody waits for an election.
func TestLeaderThatStopsHandsOver(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	other := c.others(leader)[0]
	if err := leader.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	stopped, slowest := time.Now(), time.Duration(0)
	for leader.running() {
		began := time.Now()
		other.r.mustThrottle("handed over", 1_000_000, 1, 3600, 1)
		slowest = max(slowest, time.Since(began))
	}
	if code := leader.exitCode(); code != 0 {
		t.Errorf("the leader ended with code %d", code)
	}
	within(t, "the slowest call while the leader stopped", 900*time.Millisecond, slowest, stopped) // an election takes 1 s at least
}

// TestSecondSignalStopsAtOnce: a stop that takes its time can be cut short.
func TestSecondSignalStopsAtOnce(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	for _, o := range c.others(leader) {
		o.kill() // nobody to hand over to: the stop would wait
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		if leader.running() {
			leader.cmd.Process.Signal(sig)
		}
	}
	began := time.Now()
	leader.wait(10 * time.Second)
	within(t, "a stop by a second signal", time.Second, time.Since(began), began)
}

// TestLeaderThatStopsKeepsAnswering: clients of a leader that was told to stop
// have 2 s to see that they must go elsewhere; old and new connections are
// answered meanwhile, and the count goes on.
func TestLeaderThatStopsKeepsAnswering(t *testing.T) {
	const limit = 1_000_000
	c := startCluster(t, 3)
	leader := c.leader()
	open := leader.r
	var all tally
	if !all.call(open, "kept", limit) {
		t.Fatal(all)
	}
	began := time.Now()
	if err := leader.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for time.Since(began) < 1500*time.Millisecond {
		for what, r := range map[string]client{"an open": open, "a new": dial(t, leader.resp)} {
			if !all.call(r, "kept", limit) && machine.calm(began) {
				t.Fatalf("%v after SIGTERM %s connection to the leader is not answered: %v", time.Since(began), what, all)
			}
		}
	}
	if code := leader.wait(10 * time.Second); code != 0 {
		t.Errorf("the leader ended with code %d", code)
	}
	checkCount(t, c.others(leader)[0].r, "kept", limit, all)
}
