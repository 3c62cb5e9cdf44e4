package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// stops waits until the node is out of touch and returns how long that took by its
// own boot clock.
func stops(t *testing.T, n *testNode) time.Duration {
	t.Helper()
	begun := n.clock.Boot()
	eventually(t, n.cfg.ID+" to be out of touch", func() bool { _, ok := n.Touch(); return !ok })
	return time.Duration(n.clock.Boot() - begun)
}

func inTouch(t *testing.T, nodes ...*testNode) {
	t.Helper()
	for _, n := range nodes {
		eventually(t, n.cfg.ID+" to be in touch", func() bool { _, ok := n.Touch(); return ok })
	}
}

// pollSlack is what the polling of a test may add, on a busy machine.
const pollSlack = 100 * time.Millisecond

func TestLeaderThatIsCutOffStopsWithinAHeartbeat(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	inTouch(t, c.nodes...)
	c.sever(l)
	if took := stops(t, l); took > testHeartbeat+pollSlack {
		t.Errorf("it went on for %s, a heartbeat timeout is %s", took, testHeartbeat)
	}
	c.heal()
	inTouch(t, c.nodes...)
}

// The leader's rule is compared when it answers: a process that was stopped for a
// while must not answer from what it knew before.
func TestLeaderThatSleptIsOutOfTouch(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	inTouch(t, l)
	c.sever(l) // nothing refreshes the mark
	l.clock.boot.Add(int64(testHeartbeat))
	if _, ok := l.Touch(); ok {
		t.Error("a heartbeat timeout after its last acknowledgement it answers")
	}
}

func TestFollowerThatIsCutOffStopsWithinAHeartbeat(t *testing.T) {
	c := startTestCluster(t, 3)
	f := c.others(c.leader())[0]
	inTouch(t, f)
	c.sever(f)
	if took := stops(t, f); took > testHeartbeat+pollSlack {
		t.Errorf("it went on for %s, a heartbeat timeout is %s", took, testHeartbeat)
	}
	f.clock.boot.Add(int64(time.Hour))
	if _, ok := f.Touch(); ok {
		t.Error("an hour later it answers from old state")
	}
	c.heal()
	inTouch(t, f)
}

// Heartbeats go on while a follower does not apply: contact proves nothing.
func TestFollowerThatDoesNotApplyIsOutOfTouch(t *testing.T) {
	c := newTestCluster(t, 3)
	gates := map[*testNode]chan struct{}{}
	for _, tn := range c.nodes {
		n, err := Open(tn.cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		tn.Node = n
		gate := make(chan struct{}, 1) // holds a token while applying may go on
		gate <- struct{}{}
		gates[tn] = gate
		n.FSM().OnApplied(func(uint64) { gate <- <-gate })
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	l := c.leader()
	f := c.others(l)[0]
	put(t, l, "a")
	inTouch(t, f)
	<-gates[f] // it stops at the end of the next entry
	put(t, l, "b")
	put(t, l, "c")
	stops(t, f)
	heard := f.arrivals.heard.Load()
	eventually(t, "another heartbeat", func() bool { return f.arrivals.heard.Load() > heard })
	if _, ok := f.Touch(); ok {
		t.Error("it hears the leader, has not applied what is committed, and answers")
	}
	gates[f] <- struct{}{}
	inTouch(t, f)
}

// A deposed leader that still sends says nothing about what is committed now.
func TestRequestOfAnOlderTermIsNoContact(t *testing.T) {
	c := startTestCluster(t, 1)
	n := c.leader()
	term := n.raft.Load().CurrentTerm()
	n.heard(&raft.AppendEntriesRequest{Term: term - 1, LeaderCommitIndex: 1})
	if n.arrivals.heard.Load() != 0 || n.arrivals.log.Load() != nil {
		t.Error("an older term counts")
	}
	n.heard(&raft.AppendEntriesRequest{Term: term}) // a heartbeat
	if n.arrivals.heard.Load() == 0 || n.arrivals.log.Load() != nil {
		t.Error("a heartbeat is contact, and no more")
	}
	n.heard(&raft.AppendEntriesRequest{Term: term, LeaderCommitIndex: n.raft.Load().CommitIndex()})
	if n.arrivals.newest(n.hasApplied) == never {
		t.Error("a commit index that is applied does not count")
	}
}

// The old leader committed and answered a reset and died before the followers
// heard of it; the new one's first requests carry the commit index before it.
func TestFirstRequestOfANewLeaderIsNoProof(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "a")
	f := c.others(l)[0]
	inTouch(t, f)
	c.sever(f) // from now on it hears what this test says
	stops(t, f)
	r := f.raft.Load()
	term, commit := r.CurrentTerm()+1, r.CommitIndex()
	f.heard(&raft.AppendEntriesRequest{Term: term, LeaderCommitIndex: commit})
	if _, ok := f.Touch(); ok {
		t.Error("it answers from what the leader before committed, as far as the new one knows")
	}
	f.logs.term.note(commit+1, term) // the new leader's first entry
	f.heard(&raft.AppendEntriesRequest{Term: term, LeaderCommitIndex: commit})
	if _, ok := f.Touch(); ok {
		t.Error("the first entry of the term counts before it is committed")
	}
	f.logs.term.note(commit, term)
	f.heard(&raft.AppendEntriesRequest{Term: term, LeaderCommitIndex: commit})
	if _, ok := f.Touch(); !ok {
		t.Error("an entry of the term is committed and applied, and does not count")
	}
}

// What was sent before the pause is read after it: it says what was committed
// then, and the other nodes have long elected another leader.
func TestFollowerThatSleptDoesNotAnswerFromWhatLayInTheKernel(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "a")
	f := c.others(l)[0]
	inTouch(t, f)
	c.sever(f)
	stops(t, f)
	r := f.raft.Load()
	buffered := &raft.AppendEntriesRequest{Term: r.CurrentTerm(), LeaderCommitIndex: r.CommitIndex()}
	f.clock.boot.Add(int64(time.Hour))
	f.heard(buffered)
	if _, ok := f.Touch(); ok {
		t.Error("right after the pause it answers")
	}
	resumed := f.clock.Boot()
	eventually(t, "a heartbeat timeout to go by", func() bool {
		f.heard(buffered)
		_, ok := f.Touch()
		return ok
	})
	if took := time.Duration(f.clock.Boot() - resumed); took < testHeartbeat-pollSlack/2 {
		t.Errorf("%s after the pause it answers; a heartbeat timeout is %s", took, testHeartbeat)
	}
}

// While raft's main loop waits for the disk, requests wait for the loop: they
// count from when they arrived, not from when the loop has time for them.
func TestRequestCountsFromItsArrivalThoughTheMainLoopIsBusy(t *testing.T) {
	c, disks := startBreakableCluster(t)
	l := c.leader()
	put(t, l, "a")
	c.converge()
	f := c.others(l)[0]
	release := disks[f].holdWrites()
	defer release()
	go tryPut(l, "b")
	eventually(t, "its main loop to wait for the disk", func() bool { return f.disk.writing.Load() != idle })
	c.sever(f)
	term, commit := f.raft.Load().CurrentTerm(), f.raft.Load().CommitIndex()
	for range 5 {
		req := &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte(l.raftID), Addr: []byte(l.cfg.self().Peer)},
			Term:      term, LeaderCommitIndex: commit,
		}
		before := f.arrivals.heard.Load()
		go l.trans.NetworkTransport.AppendEntries(f.serverID(), raft.ServerAddress(f.cfg.self().Peer), req, &raft.AppendEntriesResponse{})
		eventually(t, "the request to be noted", func() bool { return f.arrivals.heard.Load() > before })
	}
}

// The state machine sees neither no-ops nor barriers, so its index may stay below
// the commit index though everything is applied.
func TestAppliedUpToACommitIndexThatIsNoCommand(t *testing.T) {
	c := startTestCluster(t, 1)
	n := c.leader()
	put(t, n, "a")
	if err := n.raft.Load().Barrier(time.Second).Error(); err != nil {
		t.Fatal(err)
	}
	commit := n.raft.Load().CommitIndex()
	if n.FSM().Applied() >= commit {
		t.Fatal("the barrier is not the newest entry")
	}
	if !n.hasApplied(commit) {
		t.Error("only a barrier is not applied, which nobody applies")
	}
	if n.hasApplied(commit + 1) {
		t.Error("an entry that is not committed here counts as applied")
	}
	n.logs.command.Store(commit) // as if the newest entry were a command
	if n.hasApplied(commit) {
		t.Error("a command that is not applied counts")
	}
}

func TestFollowersTimeIsNeverAhead(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "a")
	inTouch(t, c.nodes...)
	begun := l.clock.Boot()
	for l.clock.Boot()-begun < int64(200*time.Millisecond) {
		for _, f := range c.others(l) {
			ft, _ := f.Touch()
			lt, _ := l.Touch()
			if ft > lt {
				t.Fatalf("%s says %d, the leader a moment later %d", f.cfg.ID, ft, lt)
			}
			if lt-ft > int64(time.Second) {
				t.Fatalf("%s is %s behind", f.cfg.ID, time.Duration(lt-ft))
			}
		}
	}
}

// A receipt that was noted under another leader may be ahead of the new one's
// clock: that one got the entry later, or never.
func TestFollowersTimeIsNotAheadOfANewLeader(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	inTouch(t, c.nodes...)
	for _, n := range c.nodes {
		eventually(t, n.cfg.ID+" to have a receipt of this leader", func() bool {
			rc := n.receipts.newest.Load()
			return rc != nil && rc.term == l.raft.Load().CurrentTerm()
		})
	}
	f := c.others(l)[0]
	const early = int64(time.Minute)
	rc := *f.receipts.newest.Load()
	f.receipts.newest.Store(&receipt{rc.at + early, rc.boot, rc.term - 1})
	if ft, _ := f.Touch(); ft != f.FSM().Time() {
		t.Errorf("by a receipt of another leader it is %s ahead of what it applied", time.Duration(ft-f.FSM().Time()))
	}
}

func TestTouchAllocatesNothing(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	inTouch(t, c.nodes...)
	for _, n := range []*testNode{l, c.others(l)[0]} {
		if allocs := testing.AllocsPerRun(1000, func() { n.Touch() }); allocs >= 1 {
			t.Errorf("%s: %v allocations", n.cfg.ID, allocs)
		}
	}
}

func BenchmarkBootClock(b *testing.B) {
	for b.Loop() {
		machineClock{}.Boot()
	}
}
