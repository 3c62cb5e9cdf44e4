package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

func TestNodeThatWasRemovedWhileItWasDownIsTold(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	dead := c.others(l)[0]
	dead.awaitListed()
	dead.Close()
	c.change(l, Change{Op: ChangeRemove, ID: dead.cfg.ID})
	put(t, l, "without it")
	for range 2 { // it says so each time
		c.start(dead)
		dead.awaitRemoved()
		dead.Close()
		dead.forget()
	}
	c.awaitVoters(c.others(dead)...)
}

func TestNodeThatWasRemovedWhileItWasCutOffIsTold(t *testing.T) {
	for _, role := range []string{"leader", "follower"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			c := startTestCluster(t, 3)
			cut := c.leader()
			put(t, cut, "before")
			if role == "follower" {
				cut = c.others(cut)[0]
			}
			cut.awaitListed()
			c.sever(cut)
			next := c.leader(cut)
			c.change(next, Change{Op: ChangeRemove, ID: cut.cfg.ID})
			if err := cut.removedReason(); err != nil {
				t.Errorf("nobody can have told it: %v", err)
			}
			c.heal()
			cut.awaitRemoved()
			put(t, c.leader(cut), "after")
		})
	}
}

// The old disk comes back, elsewhere, when the new one has taken its place.
func TestNodeThatWasReplacedUnderItsNodeIDIsTold(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	old := c.others(l)[0]
	put(t, l, "before")
	eventually(t, "the old disk to have it", func() bool { return has(old, "before") })
	old.Close()
	c.change(l, Change{Op: ChangeRemove, ID: old.cfg.ID})
	now := c.newcomer(old.cfg.ID)
	c.start(now)
	c.awaitVoters(c.others(old)...)
	c.start(old)
	old.awaitRemoved(now.raftID + " is the member " + old.cfg.ID)
	put(t, c.leader(old), "after")
	c.awaitVoters(c.others(old)...)
}

// At the start of a cluster the others need not wait for one that is slow.
func TestFounderThatIsRemovedBeforeItHeardOfALeaderIsTold(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	slow := c.nodes[2]
	all := func(raft.ServerID) error { return errCut }
	for _, tn := range c.nodes {
		c.start(tn)
	}
	eventually(t, "it to run raft", func() bool {
		if slow.raft.Load() == nil {
			return false
		}
		slow.trans.cut.Store(&all)
		return true
	})
	l := c.leader(slow)
	c.change(l, Change{Op: ChangeRemove, ID: slow.cfg.ID})
	c.heal()
	slow.awaitRemoved()
}

// Its clients are still on it for a moment.
func TestRemovedNodeHandsItsCallsOn(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	for _, tn := range c.nodes {
		c.start(tn)
		tn.SetHandler(func(p []byte, _ time.Duration, reply func([]byte)) { reply(p) })
	}
	l := c.leader()
	out := c.others(l)[0]
	out.awaitListed()
	c.change(l, Change{Op: ChangeRemove, ID: out.cfg.ID})
	out.awaitRemoved()
	for end := time.Now().Add(4 * testHeartbeat); time.Now().Before(end); time.Sleep(testHeartbeat / 10) {
		if !out.AwaitLeader(testHeartbeat) {
			t.Fatal("it knows no leader")
		}
		if got, o := out.Forward([]byte("call"), time.Second); o != fsm.Applied || string(got) != "call" {
			t.Fatalf("%q, %v", got, o)
		}
	}
}

func TestWhatTheOthersSayOfANode(t *testing.T) {
	const self = id1
	of := [16]byte{15: 0x0c}
	says := func(index uint64, committed bool, servers ...string) bootAnswer {
		s := memberOf(id2, index, servers...)
		s.setClusterID(of)
		s.ConfigCommitted = committed
		return bootAnswer{status: &s}
	}
	other := says(9, true, id2)
	other.status.setClusterID([16]byte{15: 0x0d})
	strange := bootAnswer{err: &refusal{code: refusedStranger, raftID: id2, text: "it is strange"}}
	for _, c := range []struct {
		name    string
		answers []bootAnswer
		removed bool
		other   string
		known   bool
		refused bool
	}{
		{name: "it is a member", answers: []bootAnswer{says(9, true, self, id2)}, known: true},
		{name: "a newer configuration without it", answers: []bootAnswer{says(9, true, id2)}, removed: true, known: true},
		{name: "its place is taken", answers: []bootAnswer{says(9, true, old1, id2)}, removed: true, other: old1, known: true},
		{name: "one of many knows", answers: []bootAnswer{says(5, true, self, id2), strange, says(9, true, id2)}, removed: true, known: true, refused: true},
		{name: "it is not committed", answers: []bootAnswer{says(9, false, id2)}, known: true},
		{name: "older than the one with it", answers: []bootAnswer{says(4, true, id2)}, known: true},
		{name: "of the same index, that another leader made", answers: []bootAnswer{says(5, true, id2)}, known: true},
		{name: "another cluster", answers: []bootAnswer{other}},
		{name: "nobody answers", answers: []bootAnswer{{err: errors.New("connection refused")}}},
		{name: "it is refused", answers: []bootAnswer{strange}, refused: true},
		{name: "another cluster refuses it", answers: []bootAnswer{{err: &refusal{code: refusedCluster, raftID: id2}}}},
	} {
		h := hearOfSelf(self, 5, func(s *peerStatus) bool { return s.isOf(of) }, c.answers)
		if (h.removed != "") != c.removed || h.other != c.other || h.known != c.known || (h.refusal != "") != c.refused {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}

// Its configuration is so old that it finds none of those that it lists: where they were, others are.
func TestNodeThatNobodyKnowsAnyMoreStops(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	n := c.others(l)[0]
	refused := []bootAnswer{{err: &refusal{code: refusedReceiver, raftID: old2, text: "the member here is another one"}}}
	n.judgeMembership(refused)
	n.awake.ran.Add(int64(2 * removedAfter))
	n.judgeMembership(refused)
	if err := n.removedReason(); err != nil {
		t.Fatalf("it hears of a leader: %v", err)
	}
	c.sever(n)
	n.clock.boot.Add(int64(2 * removedAfter))
	n.judgeMembership(refused)
	if err := n.removedReason(); err != nil {
		t.Fatalf("at once: %v", err)
	}
	n.awake.ran.Add(int64(2 * removedAfter))
	n.judgeMembership(refused)
	n.awaitRemoved("the member here is another one")
}

// A node that was started and hears nobody has applied nothing. Without its
// cluster's id it would be taken for one with a new disk.
func TestNodeKnowsItsClusterBeforeItHearsOfALeader(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "a")
	eventually(t, "all to have it", func() bool { return has(c.nodes[0], "a") && has(c.nodes[1], "a") && has(c.nodes[2], "a") })
	want := l.lineage()
	for _, tn := range c.nodes {
		tn.Close()
	}
	c.start(l)
	if got := l.lineage(); l.clusterID() != [16]byte{} || got != want || got.generation != 1 {
		t.Errorf("%+v, want %+v; applied: %x", got, want, l.clusterID())
	}
}
