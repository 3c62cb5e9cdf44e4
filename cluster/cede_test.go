package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"limitd/fsm"
)

// votesAsked gives the requests for a vote that n gets from now on.
func votesAsked(t testing.TB, n *testNode) <-chan raft.RequestVoteRequest {
	t.Helper()
	seen := make(chan raft.Observation, 64)
	eventually(t, n.cfg.ID+" to run raft", func() bool { return n.raft.Load() != nil })
	r := n.raft.Load()
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool { _, ok := o.Data.(raft.RequestVoteRequest); return ok })
	r.RegisterObserver(o)
	t.Cleanup(func() { r.DeregisterObserver(o) })
	asked := make(chan raft.RequestVoteRequest, 64)
	go func() {
		for o := range seen {
			asked <- o.Data.(raft.RequestVoteRequest)
		}
	}()
	return asked
}

// Silence alone would leave clients without a leader for up to four heartbeat timeouts.
func TestLeaderWhoseDiskHangsHandsOver(t *testing.T) {
	t.Parallel()
	c, disks := startBreakableCluster(t, func(cfg *Config) { cfg.Heartbeat, cfg.Election, cfg.Lease = time.Second, time.Second, time.Second })
	l := c.leader()
	put(t, l, "before")
	asked := make(chan raft.RequestVoteRequest, 64)
	for _, n := range c.others(l) {
		votes := votesAsked(t, n)
		go func() { asked <- <-votes }()
	}
	release := disks[l].holdWrites()
	defer release()
	go tryPut(l, "stuck")
	next := c.leader(l)
	if req := <-asked; !req.LeadershipTransfer {
		t.Error("the others elected by themselves: nobody handed over to them")
	}
	put(t, next, "after")
	if _, err := next.peers.askStatus(l.Node.cfg.self().Peer, testPatience); err != nil {
		t.Fatalf("its peers' questions wait for its disk, and their calls behind them: %v", err)
	}
	if s := l.Status(); s.LogLast == 0 {
		t.Errorf("it says nothing of its log: %+v", s)
	}
	if l.Leading() {
		t.Error("the node with the stuck disk would still decide")
	}
	eventually(t, "the node with the stuck disk to send its clients' calls to who leads now", func() bool {
		id, _ := l.leader()
		return id == next.serverID()
	})
	if _, ok := l.Touch(); ok {
		t.Error("the node with the stuck disk still answers from its state")
	}
	release()
	c.converge()
	if has(l, "stuck") {
		t.Error("the entry that was stuck took effect though another node has led since")
	}
}

// The others need not wait for heartbeats that will not come.
func TestLeaderThatStopsItselfHandsOver(t *testing.T) {
	t.Parallel()
	c, disks := startBreakableCluster(t, func(cfg *Config) { cfg.Heartbeat, cfg.Election, cfg.Lease = time.Second, time.Second, time.Second })
	l := c.leader()
	put(t, l, "before")
	asked := make(chan raft.RequestVoteRequest, 64)
	for _, n := range c.others(l) {
		votes := votesAsked(t, n)
		go func() { asked <- <-votes }()
	}
	disks[l].failWrites(unix.EIO)
	tryPut(l, "lost")
	put(t, c.leader(l), "after")
	if req := <-asked; !req.LeadershipTransfer {
		t.Error("the others elected by themselves: nobody handed over to them")
	}
}

// The successor's disk may be the same one. Then nobody leads, and nothing is lost.
func TestLeadershipHandedToANodeWhoseDiskHangsToo(t *testing.T) {
	t.Parallel()
	c, disks := startBreakableCluster(t)
	put(t, c.leader(), "before")
	releases := map[*testNode]func(){}
	for _, n := range c.nodes {
		releases[n] = disks[n].holdWrites()
		defer releases[n]()
	}
	hangs := func() (stuck []*testNode) {
		for _, n := range c.nodes {
			if n.stuck(n.clock.Boot()) {
				stuck = append(stuck, n)
			}
		}
		return stuck
	}
	eventually(t, "a leader that hangs", func() bool {
		for _, n := range c.nodes {
			go tryPut(n, "stuck") // who leads
		}
		return len(hangs()) > 0
	})
	first := hangs()[0]
	eventually(t, "a successor that hangs as well", func() bool { return len(hangs()) > 1 })
	for _, n := range c.others(first) {
		releases[n]()
	}
	put(t, c.leader(first), "after")
	releases[first]()
	c.converge()
	for _, n := range c.nodes {
		if err := n.fatalReason(); err != nil {
			t.Errorf("%s stopped: %v", n.cfg.ID, err)
		}
	}
}

// When the disk answers again before anybody was told to lead, the node leads on.
func TestALeaderThatCannotHandOverLeadsOnWhenItsDiskAnswers(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	n := c.nodes[0]
	disk := c.startBreakable(n)
	put(t, n, "before")
	release := disk.holdWrites()
	defer release()
	outcome := make(chan fsm.Outcome, 1)
	go func() { _, o := tryPut(n, "stuck"); outcome <- o }()
	eventually(t, "the node to cease to lead", func() bool { return !n.Leading() })
	n.cede(new(int64)) // there is nobody
	release()
	if o := <-outcome; o != fsm.Applied {
		t.Errorf("the batch that was stuck is %v, want applied", o)
	}
	put(t, n, "after")
	eventually(t, "it to answer from its state again", func() bool { _, ok := n.Touch(); return ok })
}

func TestANodeWhoseDiskHangsCanBeClosed(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	n := c.nodes[0]
	disk := c.startBreakable(n)
	put(t, n, "before")
	release := disk.holdWrites()
	defer release()
	n.background.Go(func() { disk.write() }) // a chore that writes, too
	go tryPut(n, "stuck")
	eventually(t, "a write to be under way", func() bool { return n.disk.writing.Load() != idle })
	begun := time.Now()
	err := n.Close()
	if took := time.Since(begun); err == nil || took > 3*shutdownTime {
		t.Errorf("closed after %s: %v", took, err)
	}
}

// Voters whose disks share one that is slow would pass the leadership round, faster than
// anything is written.
func TestLeadershipIsNotHandedOnAtOnce(t *testing.T) {
	t.Parallel()
	c, disks := startBreakableCluster(t)
	l := c.leader()
	put(t, l, "before")
	asked := make(chan raft.RequestVoteRequest, 64)
	for _, n := range c.others(l) {
		votes := votesAsked(t, n)
		go func() { asked <- <-votes }()
	}
	l.transferred.Store(l.clock.Boot() + int64(time.Hour)) // so that no pause of the machine makes it long ago
	release := disks[l].holdWrites()
	defer release()
	go tryPut(l, "stuck")
	put(t, c.leader(l), "after")
	if req := <-asked; req.LeadershipTransfer {
		t.Error("it was handed over again")
	}
}

func TestOrderToLeadIsTheBeginningOfARest(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "before")
	eventually(t, "a successor", func() bool { _, err := l.successor(""); return err == nil })
	before := l.clock.Boot()
	_, answer, err := l.pass()
	if err != nil {
		t.Fatal(err)
	}
	<-answer
	if l.transferred.Load() < before {
		t.Error("the next one may follow at once")
	}
	l.acks.mu.Lock()
	defer l.acks.mu.Unlock()
	if l.acks.floor < before {
		t.Error("what was acknowledged before still counts")
	}
}
