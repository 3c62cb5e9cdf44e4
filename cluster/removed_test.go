package cluster

import (
	"context"
	"errors"
	"strings"
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
	eventually(t, "it to have the log", func() bool { return !dead.empty() }) // else it would wait to be taken in
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
	handsOn := func() bool { // the others may elect meanwhile
		if !out.AwaitLeader(testPatience) {
			t.Fatal("it knows no leader")
		}
		got, o := out.Forward([]byte("call"), time.Second)
		return o == fsm.Applied && string(got) == "call"
	}
	eventually(t, "a call to be handed on", handsOn)
	eventually(t, "raft to forget the leader", func() bool { _, id := out.raft.Load().LeaderWithID(); return id == "" })
	eventually(t, "a call to be handed on by hearsay", handsOn)
}

func TestWhatTheOthersSayOfANode(t *testing.T) {
	const self = id1
	of := lineage{[16]byte{15: 0x0c}, 1}
	n, err := Open(newTestCluster(t, 1).nodes[0].cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	n.raftID, n.logged = self, of
	n.configs.see([]raft.Server{{ID: self}, {ID: id2}})
	says := func(index uint64, committed bool, servers ...string) bootAnswer {
		s := memberOf(id2, index, servers...)
		s.setLineage(of)
		s.ConfigCommitted = committed
		return bootAnswer{status: &s}
	}
	from := func(a bootAnswer, raftID string, of lineage) bootAnswer {
		a.status.RaftID = raftID
		a.status.setLineage(of)
		return a
	}
	strange := bootAnswer{err: &refusal{code: refusedStranger, raftID: id2, text: "it is strange"}}
	for _, c := range []struct {
		name    string
		answers []bootAnswer
		removed bool
		other   string
		known   bool
		doubt   bool
	}{
		{name: "it is a member", answers: []bootAnswer{says(9, true, self, id2)}, known: true},
		{name: "a newer configuration without it", answers: []bootAnswer{says(9, true, id2)}, removed: true},
		{name: "its place is taken", answers: []bootAnswer{says(9, true, old1, id2)}, removed: true, other: old1},
		{name: "one of many knows", answers: []bootAnswer{says(5, true, self, id2), strange, says(9, true, id2)}, removed: true, known: true, doubt: true},
		{name: "one that it has never seen", answers: []bootAnswer{from(says(9, true, id3), id3, of)}, doubt: true},
		{name: "one that it has never seen, and that lists it", answers: []bootAnswer{from(says(9, true, self, id3), id3, of)}, known: true},
		{name: "a member at the address of another one", answers: []bootAnswer{{member: three[2], status: says(9, true, id2).status}}, removed: true},
		{name: "it is not committed", answers: []bootAnswer{says(9, false, id2)}, known: true},
		{name: "older than the one with it", answers: []bootAnswer{says(4, true, id2)}, known: true},
		{name: "of the same index, that another leader made", answers: []bootAnswer{says(5, true, id2)}, known: true},
		{name: "another cluster", answers: []bootAnswer{from(says(9, true, id2), id2, lineage{[16]byte{15: 0x0d}, of.generation})}, doubt: true},
		{name: "another generation", answers: []bootAnswer{from(says(9, true, id2), id2, lineage{of.cluster, of.generation + 1})}, doubt: true},
		{name: "nobody answers", answers: []bootAnswer{{err: errors.New("connection refused")}}},
		{name: "it is refused", answers: []bootAnswer{strange}, doubt: true},
		{name: "a new disk answers for another node", answers: []bootAnswer{{err: &refusal{code: refusedStranger, raftID: id3, local: true}}}},
		{name: "another node answers", answers: []bootAnswer{{err: &refusal{code: refusedReceiver, raftID: id3}}}},
		{name: "another cluster refuses it", answers: []bootAnswer{{err: &refusal{code: refusedCluster, raftID: id2}}}},
	} {
		h := hearOfSelf(self, 5, n.believed, c.answers)
		if (h.removed != "") != c.removed || h.other != c.other || h.known != c.known || (h.doubt != "") != c.doubt || h.unlisted != "" {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}

// It finds none of the members where it looks for them: one is gone, and where that one was, another is.
func TestRemovedNodeIsToldByAMemberAtTheAddressOfAnother(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "before")
	n, gone := c.others(l)[0], c.others(l)[1]
	eventually(t, "n to have it", func() bool { return has(n, "before") })
	n.Close()
	c.change(l, Change{Op: ChangeRemove, ID: n.cfg.ID})
	c.change(l, Change{Op: ChangeRemove, ID: gone.cfg.ID})
	gone.awaitRemoved()
	gone.Close()
	at := gone.cfg.self().Peer
	c.restart(l, func(cfg *Config) { cfg.Members = []Member{{ID: cfg.ID, Peer: at}} })
	c.leader(n, gone)
	c.change(l, Change{Op: ChangeJoin, ID: l.cfg.ID, Peer: at})
	c.start(n)
	n.awaitRemoved("configuration", l.raftID)
}

// All others were refused, or are new: nobody whom it knows has told it anything.
func TestLastSurvivorIsNotToldByStrangersThatItIsRemoved(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := newTestCluster(t, 3)
	for _, tn := range c.nodes {
		tn.cfg.Logger = logTo(&log)
		c.start(tn)
	}
	l := c.leader()
	put(t, l, "k")
	n, wiped := c.others(l)[0], c.others(l)[1]
	eventually(t, "n to have it", func() bool { return has(n, "k") })
	n.Close()
	l.Close()
	wiped.Close()
	wiped.wipe()
	c.restart(wiped, func(cfg *Config) {
		cfg.Join = func(context.Context, string, bool) error { return errors.New("nobody decides") }
	})
	c.start(n)
	eventually(t, "the new disk to be heard", func() bool {
		_, err := n.peers.askAnyone(wiped.cfg.self().Peer, checkEvery)
		return refusedAs(err, refusedStranger)
	})
	strange := []bootAnswer{
		{err: &refusal{code: refusedReceiver, raftID: wiped.raftID, text: "the member here is another one"}},
		{err: &refusal{code: refusedStranger, raftID: l.raftID, text: "it is strange"}},
	}
	n.judgeMembership(strange)
	for range 2 {
		n.awake.ran.Add(int64(2 * removedAfter))
		n.pollOnce()
		n.judgeMembership(strange)
		n.awake.ran.Add(int64(2 * removedAfter))
		n.judgeMembership(strange)
	}
	if err := n.removedReason(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "keep it") || !strings.Contains(log.String(), "it is strange") {
		t.Errorf("it does not warn:\n%s", log.String())
	}
	c.start(l)
	put(t, c.leader(wiped), "it counts")
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
