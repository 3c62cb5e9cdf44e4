package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// breakDisk opens a node's stores over a file that can be broken, and starts it.
func (c *testCluster) startBreakable(tn *testNode) *brokenBolt {
	c.t.Helper()
	n, err := Open(tn.cfg, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	tn.Node = n
	b := &brokenBolt{logFile: n.logs.file}
	n.logs.file, n.stable.file = b, b
	if err := n.Start(); err != nil {
		c.t.Fatal(err)
	}
	return b
}

func startBreakableCluster(t *testing.T, change ...func(*Config)) (*testCluster, map[*testNode]*brokenBolt) {
	t.Helper()
	c := newTestCluster(t, 3, change...)
	disks := map[*testNode]*brokenBolt{}
	for _, tn := range c.nodes {
		disks[tn] = c.startBreakable(tn)
	}
	return c, disks
}

// A leader whose disk hangs would go on with its heartbeats and keep the others
// from electing; so it must fall silent, and stop when the disk does not come back.
func TestOthersElectWhenTheLeadersDiskHangs(t *testing.T) {
	t.Parallel()
	c, disks := startBreakableCluster(t, func(cfg *Config) { cfg.DiskStall = 3 * time.Second })
	l := c.leader()
	put(t, l, "before")
	turn, err := l.Begin() // before the disk hangs: else a tick may have the turn
	if err != nil {
		t.Fatal(err)
	}
	release := disks[l].holdWrites()
	defer release()
	outcome := make(chan fsm.Outcome, 1)
	go func() {
		_, o := l.Commit(putEntry(turn, "stuck"))
		outcome <- o
	}()
	next := c.leader(l)
	put(t, next, "after")
	if _, ok := l.Touch(); ok {
		t.Error("the node with the stuck disk still answers from its state")
	}
	if err := l.fatalReason(); err != nil {
		t.Fatalf("it stopped before raft.disk_stall was over: %v", err)
	}
	l.runFor(4 * time.Second)
	if err := l.loopStuck(&lasting[int64]{is: l.newestStep()}); err == nil || !strings.Contains(err.Error(), "raft.disk_stall") {
		t.Errorf("who looks at raft's loop sees %v", err)
	}
	eventually(t, "the node to stop", func() bool { return l.fatalReason() != nil })
	if err := l.fatalReason().Error(); !strings.Contains(err, "raft.disk_stall") || !strings.Contains(err, l.logs.path) {
		t.Errorf("the reason names neither key nor file: %s", err)
	}
	if o := <-outcome; o != fsm.Unknown {
		t.Errorf("the batch that hung is %v, want unknown", o)
	}
	if _, err := l.Begin(); err == nil {
		t.Error("a node that must not go on begins a batch")
	}
}

func TestDiskThatComesBackInTimeDoesNoHarm(t *testing.T) {
	t.Parallel()
	c, disks := startBreakableCluster(t)
	l := c.leader()
	release := disks[l].holdWrites()
	go tryPut(l, "stuck")
	next := c.leader(l)
	put(t, next, "after")
	release()
	c.converge()
	if err := l.fatalReason(); err != nil {
		t.Error(err)
	}
	for _, n := range c.nodes {
		if has(n, "stuck") {
			t.Errorf("%s holds the entry that only the old leader had", n.cfg.ID)
		}
	}
}

func TestFailedWriteStopsTheNodeAndNotTheCluster(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			c, disks := startBreakableCluster(t)
			l := c.leader()
			put(t, l, "before")
			victim := l
			if who == "follower" {
				victim = c.others(l)[0]
			}
			disks[victim].failWrites(broken)
			if _, o := tryPut(l, "meanwhile"); who == "leader" && o != fsm.Unknown {
				t.Errorf("a batch whose write failed is %v, want unknown", o)
			}
			eventually(t, "the node to stop", func() bool { return victim.fatalReason() != nil })
			if err := victim.fatalReason(); !errors.Is(err, broken) {
				t.Errorf("the reason is %v", err)
			}
			put(t, c.leader(victim), "after")
		})
	}
}

// An entry that no machine can read must stop every machine, at the same place,
// and not crash it.
func TestUnreadableEntryStopsEveryNode(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l, asked := c.leader(), time.Time{}
	eventually(t, "a node to stop", func() bool {
		for _, n := range c.nodes {
			if n.fatalReason() != nil {
				return true
			}
			if n.Leading() && time.Since(asked) > 2*testHeartbeat { // a leader may be deposed before it is committed
				l, asked = n, time.Now()
				l.raft.Load().Apply([]byte("no entry of limitd"), time.Second)
			}
		}
		return false
	})
	asked = time.Now()
	eventually(t, "all nodes to stop", func() bool {
		var stopped, running []*testNode
		for _, n := range c.nodes {
			if n.fatalReason() != nil {
				stopped = append(stopped, n)
			} else {
				running = append(running, n)
			}
		}
		if len(running) > 0 && len(stopped) > 0 && time.Since(asked) > 20*testHeartbeat {
			// They stopped before they told it that the entry is committed, and it cannot find out alone.
			asked = time.Now()
			stopped[0].forget()
			c.restart(stopped[0])
		}
		return len(running) == 0
	})
	if _, o := tryPut(l, "after"); o != fsm.Refused {
		t.Errorf("a halted node decides: %v", o)
	}
	for _, n := range c.nodes {
		if _, ok := n.Touch(); ok {
			t.Errorf("%s answers from a halted machine", n.cfg.ID)
		}
	}
}

func TestMainLoopThatDoesNotAnswerIsFound(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1, func(cfg *Config) { cfg.DiskStall = time.Second })
	n := c.leader()
	if !n.awaitProbe(closedChannel()) {
		t.Fatal("an answer was not taken for one")
	}
	done := make(chan bool)
	go func() { done <- n.awaitProbe(make(chan struct{})) }()
	installing := time.Now()
	n.trans.installs.Add(1)
	for time.Since(installing) < 1500*time.Millisecond { // a snapshot that moves is no stuck loop
		n.trans.moved()
		time.Sleep(10 * time.Millisecond)
	}
	if err := n.fatalReason(); err != nil {
		t.Fatalf("while a snapshot was being installed: %v", err)
	}
	n.trans.installs.Add(-1)
	n.runFor(3 * time.Second)
	if <-done {
		t.Error("no answer was taken for one")
	}
	if err := n.fatalReason(); err == nil || !strings.Contains(err.Error(), "main loop") {
		t.Errorf("the reason is %v", err)
	}
}

func closedChannel() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

func TestStalledWriteHasAnAge(t *testing.T) {
	clock := &fixedClock{boot: 1000}
	d := newDisk(clock, func(error) {})
	if d.stalled(5000) != 0 {
		t.Error("no write is under way, and it has an age")
	}
	d.write(func() error {
		if got := d.stalled(1400); got != 400 {
			t.Errorf("a write that began 400 ns ago is %d old", got)
		}
		return nil
	})
	if d.stalled(5000) != 0 {
		t.Error("it has ended, and has an age")
	}
}

func TestWriteAndTruncationUnderWayAreTimed(t *testing.T) {
	d := newDisk(&fixedClock{boot: 1000}, func(error) {})
	var w writesUnderWay
	if w.look(d, 100) != 0 {
		t.Error("nothing is under way, and it has lasted")
	}
	for name, run := range map[string]func(func() error) error{"write": d.write, "truncation": d.truncate} {
		run(func() error {
			if first, later := w.look(d, 200), w.look(d, 700); first != 0 || later != 500 {
				t.Errorf("a %s looked at for 500 ns has lasted %d, then %d", name, first, later)
			}
			if name == "truncation" && d.stalled(1400) != 0 {
				t.Error("a truncation silences the leader")
			}
			return nil
		})
	}
	if w.look(d, 5000) != 0 {
		t.Error("both have ended, and it lasts")
	}
}

func TestLatencyQuantile(t *testing.T) {
	var h histogram
	if q, n := h.quantile(0.99); q != 0 || n != 0 {
		t.Errorf("of nothing: %s of %d", q, n)
	}
	for range 98 {
		h.observe(900 * time.Microsecond)
	}
	h.observe(40 * time.Millisecond)
	h.observe(40 * time.Millisecond)
	if q, n := h.quantile(0.5); q < 900*time.Microsecond || q > 2*time.Millisecond || n != 100 {
		t.Errorf("the median is %s of %d", q, n)
	}
	if q, _ := h.quantile(0.99); q < 40*time.Millisecond || q > 80*time.Millisecond {
		t.Errorf("the 99th percentile is %s", q)
	}
}

var _ raft.LogStore = (*brokenBolt)(nil)
