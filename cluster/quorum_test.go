package cluster

import (
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
		{"12", "2", "2 voters and 2 must answer; n2 does not: wait for n2 or remove n2 first"},
		{"123", "3", ""},
		{"123", "23", "3 voters and 2 must answer; n2 and n3 do not: wait for n2 and n3 or remove n2 and n3 first"},
		{"1234", "4", ""},
		{"1234", "34", "4 voters and 3 must answer"},
		{"12345", "45", ""},
		{"12345", "345", "until n3 and n4 and n5 are back"},
	} {
		var after []raft.Server
		for _, r := range c.after {
			after = append(after, server[r])
		}
		err := quorumAfter("after it there are", after, func(id raft.ServerID) bool {
			return !strings.ContainsRune(c.silent, rune(id[1]))
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
	eventually(t, "n4 to be caught up", func() bool { return l.caughtUp(s) == nil })

	term := l.raft.Load().CurrentTerm()
	forget := func() { // what it was sent and acknowledged
		l.acks.mu.Lock()
		delete(l.acks.peers, s.ID)
		l.acks.mu.Unlock()
	}
	all := func(raft.ServerID) error { return errCut }
	n4.trans.cut.Store(&all)
	cut := func(id raft.ServerID) error {
		if id == s.ID {
			return errCut
		}
		return nil
	}
	l.trans.cut.Store(&cut)
	eventually(t, "the leader to miss it", func() bool { forget(); return !l.healthy(s.ID) })
	c.refuses(l, Change{Op: ChangePromote, ID: "n4"}, "n4 does not answer")
	l.acks.note(s.ID, term, peerAck{sent: l.clock.Boot(), heard: l.clock.Boot() + 1e10, match: 0}, l.configuration())
	var entries []raft.Future
	for range caughtUpEntries + 1 {
		entries = append(entries, l.raft.Load().Barrier(0))
	}
	for _, f := range entries {
		if err := f.Error(); err != nil {
			t.Fatal(err)
		}
	}
	c.refuses(l, Change{Op: ChangePromote, ID: "n4", Force: true}, "n4 is not caught up", "entries of the log, 1000 are allowed")
	forget()
	l.acks.note(s.ID, term, peerAck{sent: l.clock.Boot(), heard: l.clock.Boot() + 1e10, match: l.raft.Load().LastIndex()}, l.configuration())
	l.clock.boot.Add(int64(3 * caughtUpTime))
	put(t, l, "later")
	c.refuses(l, Change{Op: ChangePromote, ID: "n4"}, "its state is", "behind, 1s is allowed")
}
