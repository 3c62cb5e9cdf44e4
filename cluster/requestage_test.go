package cluster

import (
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// A cut holds a request up, and it arrives when the cut is over. All that is certain of
// it is that it was sent after the answer before it.
func TestRequestIsOnlyYoungerThanTheAnswerBeforeIt(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	boot := int64(10)
	var ages requestAges
	c := newRaftConn(near, time.Minute, func() {})
	ages.add(&c.age, "l", boot, func() int64 { return boot })
	arrives := func() {
		t.Helper()
		go far.Write([]byte{1})
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	answers := func() {
		t.Helper()
		go far.Read(make([]byte, 1))
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	boot = 30
	arrives()
	if got := ages.sentAfter("l", 31); got != 10 {
		t.Errorf("the first request was sent after %d, want the beginning of the connection, 10", got)
	}
	boot = 40
	answers()
	if got := ages.sentAfter("l", 41); got != 41 {
		t.Errorf("nothing is open, and a request was sent after %d", got)
	}
	boot = 900
	arrives()
	if got := ages.sentAfter("l", 901); got != 40 {
		t.Errorf("the second request was sent after %d, want 40, the first answer", got)
	}
	if got := ages.sentAfter("other", 901); got != 901 {
		t.Errorf("another node's request was sent after %d, want 901: it is not on this connection", got)
	}
	ages.remove(&c.age)
	if got := ages.sentAfter("l", 901); got != 901 {
		t.Errorf("the connection is closed, and a request was sent after %d", got)
	}
}

// A follower that was cut off hears its leader again by what was on its way when the cut
// began. Denied by that, a client would miss resets of any age.
func TestRequestThatWasOnItsWayForLongIsNoProof(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "a")
	f := c.others(l)[0]
	inTouch(t, f)
	var late requestAge
	f.peers.raft.ages.add(&late, string(l.serverID()), f.clock.Boot()-int64(time.Hour), f.clock.Boot)
	late.open.Store(true)
	stops(t, f)
	f.heard(&raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ID: []byte(l.serverID())}, Term: l.raft.Load().CurrentTerm(), LeaderCommitIndex: f.raft.Load().CommitIndex(),
	})
	if _, ok := f.Touch(); ok {
		t.Error("a request that may be an hour old proves that the state is current")
	}
	late.answer()
	inTouch(t, f)
}
