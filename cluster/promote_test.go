package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// What the leader has heard of the member is up to a second old: from before its vote.
func TestMemberThatWasDemotedAtOnceGetsNoVoteBack(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	n4 := c.newcomer("n4")
	c.start(n4)
	c.awaitVoters(c.nodes...)
	c.change(l, Change{Op: ChangeDemote, ID: "n4"})
	eventually(t, "n4 to know that it has no vote", func() bool { return n4.role() == "nonvoter" })
	old := n4.ownStatus()
	old.WantsVote = true
	l.notePolled(old)
	l.promoteOne(n4.serverID())
	c.awaitMembers(c.nodes, c.nodes[:3]...)
}

func TestVoteIsGivenOnlyToWhoKnowsThatItHasNone(t *testing.T) {
	for _, s := range []struct {
		status peerStatus
		want   bool
	}{
		{peerStatus{WantsVote: true, ConfigIndex: 9, ConfigCommitted: true}, true},
		{peerStatus{WantsVote: true, ConfigIndex: 10, ConfigCommitted: true}, true},
		{peerStatus{WantsVote: true, ConfigIndex: 8, ConfigCommitted: true}, false}, // it had none before it had one
		{peerStatus{WantsVote: true, ConfigIndex: 9}, false},
		{peerStatus{ConfigIndex: 9, ConfigCommitted: true}, false},
	} {
		if got := s.status.wantsVoteAt(9); got != s.want {
			t.Errorf("%+v: %v", s.status, got)
		}
	}
}

// It is killed, or its disk fails, between its vote and the file's end. Else each time
// that it is demoted it would be promoted again.
func TestNodeThatHasItsVoteForgetsThatItWantedOne(t *testing.T) {
	for _, how := range []string{"committed", "in the snapshot at the start"} {
		t.Run(how, func(t *testing.T) {
			n := newTestCluster(t, 1).nodes[0]
			var err error
			if n.Node, err = Open(n.cfg, nil); err != nil {
				t.Fatal(err)
			}
			if err := n.joining.set(joinsAsVoter); err != nil {
				t.Fatal(err)
			}
			if !n.ownStatus().WantsVote {
				t.Fatal("it does not want its vote")
			}
			voter := []raft.Server{{ID: n.serverID(), Address: "127.0.0.1:2", Suffrage: raft.Voter}}
			log := []raft.Server{{ID: n.serverID(), Address: "127.0.0.1:2", Suffrage: raft.Nonvoter}}
			if how == "committed" {
				n.configs.noteCommitted(n.serverID(), 5, voter)
			} else {
				n.configs.load(n.serverID(), indexedConfiguration{5, voter}, indexedConfiguration{6, log})
			}
			if n.ownStatus().WantsVote {
				t.Error("it still wants a vote")
			}
			n.judgeOwnConfiguration()
			if n.joining.wants() != joinsNot {
				t.Errorf("its file still says %q", n.joining.wants())
			}
		})
	}
}

// An entry that is not committed proves nothing: it may be taken back.
func TestVoteThatIsOnlyInTheLogIsNone(t *testing.T) {
	var c configurations
	c.load("n1-00000001", indexedConfiguration{}, indexedConfiguration{6, []raft.Server{{ID: "n1-00000001", Suffrage: raft.Voter}}})
	if c.hasVoted() {
		t.Error("it takes itself for a voter")
	}
}

// The status is made on the goroutine that reads the connection.
func TestStatusDoesNotWaitForTheFileOfTheJoiner(t *testing.T) {
	n := newTestCluster(t, 1).nodes[0]
	var err error
	if n.Node, err = Open(n.cfg, nil); err != nil {
		t.Fatal(err)
	}
	n.joining.mu.Lock() // as while the disk hangs
	defer n.joining.mu.Unlock()
	done := make(chan struct{})
	go func() { n.ownStatus(); close(done) }()
	select {
	case <-done:
	case <-time.After(testPatience):
		t.Error("the status waits")
	}
}

func TestJoiningFileThatIsGoneAlready(t *testing.T) {
	var j joining
	if err := j.load(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	j.intent.Store(joinsAsVoter)
	if err := j.set(joinsNot); err != nil || j.wants() != joinsNot {
		t.Errorf("%v, it wants to be a %q", err, j.wants())
	}
}
