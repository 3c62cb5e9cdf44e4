package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// converge waits until all nodes have applied the same, and returns it.
func (c *testCluster) converge() fsm.State {
	c.t.Helper()
	var want fsm.State
	eventually(c.t, "a leader that gets a batch through", func() bool {
		l := c.leader() // one that was deposed may not know it yet
		_, o := tryPut(l, "converge")
		want = l.FSM().State()
		return o == fsm.Applied
	})
	for _, n := range c.nodes {
		eventually(c.t, n.cfg.ID+" to apply what the leader has", func() bool { return n.FSM().State().Last >= want.Last })
		if got := n.FSM().State(); got.Last == want.Last && got.Chain != want.Chain {
			c.t.Fatalf("%s diverged: %+v, the leader %+v", n.cfg.ID, got, want)
		}
	}
	return want
}

func TestErrorOfApplyThatIsCertain(t *testing.T) {
	for err, want := range map[error]fsm.Outcome{
		raft.ErrNotLeader:                    fsm.Refused,
		raft.ErrEnqueueTimeout:               fsm.Refused,
		raft.ErrLeadershipTransferInProgress: fsm.Refused,
		raft.ErrLeadershipLost:               fsm.Unknown,
		raft.ErrRaftShutdown:                 fsm.Unknown,
		raft.ErrAbortedByRestore:             fsm.Unknown,
		errors.New("input/output error"):     fsm.Unknown,
	} {
		if got := outcomeOf(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

// A leader that is cut off cannot know what becomes of its batch; the others go on
// without it; and in the end all hold the same.
func TestBatchOfALeaderThatIsCutOffIsUnknown(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	old := c.leader()
	put(t, old, "before")
	c.converge()
	turn, err := old.Begin()
	if err != nil {
		t.Fatal(err)
	}
	c.sever(old)
	if _, o := old.Commit(putEntry(turn, "lost")); o != fsm.Unknown {
		t.Errorf("the batch of a leader without a majority is %v, want unknown", o)
	}
	if old.Leading() {
		t.Error("a leader that lost its lease still says that it leads")
	}
	if _, err := old.Begin(); err == nil {
		t.Error("it may begin another batch")
	}
	next := c.leader(old)
	put(t, next, "after")
	c.heal()
	c.converge()
	for _, n := range c.nodes {
		if has(n, "lost") || !has(n, "before") || !has(n, "after") {
			t.Errorf("%s: lost %v, before %v, after %v", n.cfg.ID, has(n, "lost"), has(n, "before"), has(n, "after"))
		}
	}
}

func TestFollowerCannotDecide(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	for _, f := range c.others(c.leader()) {
		if _, err := f.Begin(); !errors.Is(err, errNotLeading) {
			t.Errorf("%s follows and begins: %v", f.cfg.ID, err)
		}
	}
}

func TestOneBatchAtATime(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	l := c.leader()
	first, err := l.Begin()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan fsm.Turn)
	go func() {
		turn, _ := l.Begin()
		second <- turn
	}()
	select {
	case <-second:
		t.Fatal("two batches were begun at once")
	case <-time.After(20 * time.Millisecond):
	}
	index, o := l.Commit(fsm.AppendEntry(nil, first, nil))
	if o != fsm.Applied {
		t.Fatal(o)
	}
	if turn := <-second; turn.Base != index || turn.At < first.At {
		t.Errorf("after a batch at %d decided at %d, the next is decided on %d at %d", index, first.At, turn.Base, turn.At)
	}
	l.Abort()
	put(t, l, "after an abort")
}

func TestRestartKeepsStateAndIdentity(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	for i := range 30 {
		put(t, c.leader(), fmt.Sprint("key", i))
	}
	want := c.converge()
	ids := map[string]string{}
	for _, n := range c.nodes {
		ids[n.cfg.ID] = n.raftID
	}
	c.stop()
	for _, n := range c.nodes {
		c.start(n)
		if n.raftID != ids[n.cfg.ID] {
			t.Errorf("%s came back as %s, it was %s", n.cfg.ID, n.raftID, ids[n.cfg.ID])
		}
	}
	l := c.leader()
	if got := l.FSM().State(); got.Last <= want.Last || got.ClusterID != want.ClusterID { // the leadership began with a batch
		t.Errorf("after a restart the state is %+v, it was %+v", got, want)
	}
	if !has(l, "key7") {
		t.Error("a key is gone")
	}
	c.converge()
}

func TestAwaitLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	c.start(c.nodes[0])
	if c.nodes[0].AwaitLeader(30 * time.Millisecond) {
		t.Error("alone of three, it knows a leader")
	}
	c.start(c.nodes[1])
	c.start(c.nodes[2])
	for _, n := range c.nodes {
		if !n.AwaitLeader(testPatience) {
			t.Errorf("%s: no leader in %s", n.cfg.ID, testPatience)
		}
	}
}

func TestForwardReachesTheLeaderOrNobody(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	for _, tn := range c.nodes {
		n, err := Open(tn.cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		tn.Node = n
		n.SetHandler(func(payload []byte, _ time.Duration, reply func([]byte)) {
			if !n.Leading() {
				reply(nil)
				return
			}
			reply(fmt.Append(nil, n.cfg.ID, " got ", string(payload)))
		})
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if _, o := c.nodes[0].Forward([]byte("x"), time.Second); o != fsm.Refused {
		t.Errorf("no leader is known: %v, want refused", o)
	}
	l := c.leader()
	if _, o := l.Forward([]byte("x"), time.Second); o != fsm.Refused {
		t.Errorf("the leader forwards to itself: %v, want refused", o)
	}
	for _, f := range c.others(l) {
		eventually(t, f.cfg.ID+" to know the leader", f.leaderKnown)
		reply, o := f.Forward([]byte("x"), time.Second)
		if want := l.cfg.ID + " got x"; o != fsm.Applied || string(reply) != want {
			t.Errorf("%s got %q, %v; want %q", f.cfg.ID, reply, o, want)
		}
	}
}

func TestTransferToANamedNode(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	old := c.leader()
	put(t, old, "before")
	to, asked := c.others(old)[0], c.others(old)[1]
	if !asked.AwaitLeader(testPatience) {
		t.Fatal("it does not know the leader")
	}
	if err := asked.Transfer("n9"); err == nil || !strings.Contains(err.Error(), "n9") {
		t.Errorf("to nobody: %v", err)
	}
	eventually(t, "the successor to be caught up", func() bool { _, err := old.successor(to.cfg.ID); return err == nil })
	if err := asked.Transfer(to.cfg.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, to.cfg.ID+" to lead", to.Leading)
	if err := to.Transfer(to.cfg.ID); err != nil {
		t.Errorf("to the leader itself: %v", err)
	}
	put(t, to, "after")
	c.converge()
}

func TestTransfersAreSpaced(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	l.transferred.Store(l.clock.Boot())
	if err := l.handOver(""); err == nil || !strings.Contains(err.Error(), "has just ended") {
		t.Errorf("right after a transfer: %v", err)
	}
	l.transferred.Store(0)
	l.transferring.Store(true)
	if err := l.handOver(""); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("during a transfer: %v", err)
	}
	if _, ok := l.Touch(); ok || l.Leading() {
		t.Error("while it hands over it still answers")
	}
	l.transferring.Store(false)
}

func TestNobodyToTransferTo(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	c.sever(l)
	l.clock.boot.Add(int64(testHeartbeat)) // what was acknowledged is old
	if err := l.handOver(""); err == nil || !strings.Contains(err.Error(), "no other voter") {
		t.Errorf("cut off: %v", err)
	}
}

// Raft's flag of a transfer that went wrong stays set for ever; only a new process
// helps.
func TestStuckTransferStopsTheNode(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	l := c.leader()
	l.noteRefusal(raft.ErrLeadershipTransferInProgress)
	l.runFor(2 * testHeartbeat)
	l.noteRefusal(nil) // a write went through in between
	l.noteRefusal(raft.ErrLeadershipTransferInProgress)
	if err := l.fatalReason(); err != nil {
		t.Fatal(err)
	}
	l.clock.boot.Add(int64(time.Hour)) // a pause is no time for a transfer to end
	l.noteRefusal(raft.ErrLeadershipTransferInProgress)
	if err := l.fatalReason(); err != nil {
		t.Fatalf("right after a pause: %v", err)
	}
	l.runFor(2*testHeartbeat + 1)
	l.noteRefusal(raft.ErrLeadershipTransferInProgress)
	if err := l.fatalReason(); err == nil || !strings.Contains(err.Error(), "transfer") {
		t.Errorf("writes are refused for too long: %v", err)
	}
}
