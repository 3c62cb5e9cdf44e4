package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestQuorumAfterAChange(t *testing.T) {
	server := map[rune]raft.Server{}
	for _, r := range "12345" {
		server[r] = raft.Server{ID: raft.ServerID("n" + string(r) + "-00000000")}
	}
	for _, c := range []struct {
		after, silent string
		want          string // "": it may be made
	}{
		{"1", "", ""},
		{"12", "", ""},
		{"12", "2", "2 voters and 2 must answer and be caught up; n2 does not answer: wait for n2 or remove n2 first"},
		{"123", "3", ""},
		{"123", "23", "3 voters and 2 must answer and be caught up; n2 does not answer and n3 does not answer: wait for n2 and n3 or remove n2 and n3 first"},
		{"1234", "4", ""},
		{"1234", "34", "4 voters and 3 must answer"},
		{"12345", "45", ""},
		{"12345", "345", "until n3 and n4 and n5 are back"},
	} {
		var after []raft.Server
		for _, r := range c.after {
			after = append(after, server[r])
		}
		err := quorumAfter("after it there are", after, func(id raft.ServerID) string {
			if strings.ContainsRune(c.silent, rune(id[1])) {
				return "does not answer"
			}
			return ""
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s without %q: %v, want %q", c.after, c.silent, err, c.want)
		}
	}
}

// A node that would hold the others up gets no vote, and the reason has a figure.
func TestMemberThatIsBehindGetsNoVote(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3, func(cfg *Config) { cfg.Heartbeat, cfg.Election, cfg.Lease = time.Second, time.Second, time.Second })
	l := c.leader()
	n4 := c.newcomer("n4", func(cfg *Config) { cfg.NonVoter = true })
	c.start(n4)
	eventually(t, "n4 to follow", func() bool { return n4.role() == "nonvoter" })
	put(t, l, "a")
	s, _ := findServer(l.configuration().Servers, "n4")
	eventually(t, "n4 to be caught up", func() bool { _, err := l.caughtUp(s); return err == nil })

	tells := c.loseTouch(l, n4)
	c.refuses(l, Change{Op: ChangePromote, ID: "n4"}, "n4 does not answer")
	tells(0)
	l.grow(caughtUpEntries + 1)
	c.refuses(l, Change{Op: ChangePromote, ID: "n4", Force: true}, "n4 lacks", "entries of the log, 1000 are allowed")
	tells(l.raft.Load().LastIndex())
	l.clock.boot.Add(int64(3 * caughtUpTime))
	put(t, l, "later")
	c.refuses(l, Change{Op: ChangePromote, ID: "n4"}, "its state is", "behind, 1s is allowed")
}

// A voter that answers heartbeats and gets none of the log is of no help to a majority.
func TestVoterThatIsBehindDoesNotCountForTheQuorum(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3, func(cfg *Config) { cfg.Heartbeat, cfg.Election, cfg.Lease = time.Second, time.Second, time.Second })
	l := c.leader()
	behind, other := c.others(l)[0], c.others(l)[1]
	tells := c.loseTouch(l, behind)
	tells(0)
	l.grow(caughtUpEntries + 1)
	for _, op := range []ChangeOp{ChangeRemove, ChangeDemote} {
		c.refuses(l, Change{Op: op, ID: other.cfg.ID}, "2 must answer and be caught up", behind.cfg.ID+" lacks", "entries of the log, 1000 are allowed: wait for "+behind.cfg.ID)
	}
	tells(l.raft.Load().LastIndex() - caughtUpEntries/2) // what a busy one lacks
	rest := slices.DeleteFunc(voters(l.configuration().Servers), func(s raft.Server) bool { return s.ID == other.serverID() })
	if err := l.checkQuorum(t.Context(), "after it there are", rest); err != nil {
		t.Errorf("it is only busy: %v", err)
	}
}

// loseTouch cuts f off from the leader, until it counts as silent. What f acknowledged
// then is what the test tells.
func (c *testCluster) loseTouch(l, f *testNode) (tells func(match uint64)) {
	c.t.Helper()
	id := f.serverID()
	forget := func() {
		l.acks.mu.Lock()
		delete(l.acks.peers, id)
		l.acks.mu.Unlock()
	}
	all := func(raft.ServerID) error { return errCut }
	f.trans.cut.Store(&all)
	one := func(to raft.ServerID) error {
		if to == id {
			return errCut
		}
		return nil
	}
	l.trans.cut.Store(&one)
	eventually(c.t, "the leader to miss it", func() bool { forget(); return !l.healthy(id) })
	return func(match uint64) {
		forget()
		boot := l.clock.Boot()
		l.acks.note(id, l.raft.Load().CurrentTerm(), peerAck{sent: boot, heard: boot + 1e10, match: match}, l.configuration())
	}
}

// grow commits so many entries.
func (tn *testNode) grow(entries int) {
	tn.cluster.t.Helper()
	var under []raft.Future
	for range entries {
		under = append(under, tn.raft.Load().Barrier(0))
	}
	for _, f := range under {
		if err := f.Error(); err != nil {
			tn.cluster.t.Fatal(err)
		}
	}
}
