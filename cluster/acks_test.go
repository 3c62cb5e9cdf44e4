package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
)

func configOf(voters []raft.ServerID, others ...raft.ServerID) raft.Configuration {
	var c raft.Configuration
	for _, v := range voters {
		c.Servers = append(c.Servers, raft.Server{ID: v, Suffrage: raft.Voter})
	}
	for _, o := range others {
		c.Servers = append(c.Servers, raft.Server{ID: o, Suffrage: raft.Nonvoter})
	}
	return c
}

func TestQuorumIsAsFreshAsItsOldestMember(t *testing.T) {
	three := configOf([]raft.ServerID{"a", "b", "c"})
	four := configOf([]raft.ServerID{"a", "b", "c", "d"})
	five := configOf([]raft.ServerID{"a", "b", "c", "d", "e"})
	for _, tc := range []struct {
		name string
		c    raft.Configuration
		sent map[raft.ServerID]int64
		want int64
	}{
		{"alone", configOf([]raft.ServerID{"a"}), nil, always},
		{"alone among nonvoters", configOf([]raft.ServerID{"a"}, "b", "c"), nil, always},
		{"nobody has answered", three, nil, never},
		{"one of two others is enough", three, map[raft.ServerID]int64{"b": 50}, 50},
		{"the younger of two", three, map[raft.ServerID]int64{"b": 50, "c": 70}, 70},
		{"both of two", configOf([]raft.ServerID{"a", "b"}), map[raft.ServerID]int64{"b": 7}, 7},
		{"two of three others: one is too few", four, map[raft.ServerID]int64{"b": 50}, never},
		{"two of three others", four, map[raft.ServerID]int64{"b": 50, "c": 60, "d": 70}, 60},
		{"two of four others", five, map[raft.ServerID]int64{"b": 50, "c": 60, "d": 40, "e": 30}, 50},
		{"nonvoters do not count", configOf([]raft.ServerID{"a", "b"}, "c"), map[raft.ServerID]int64{"c": 70}, never},
		{"a leader without a vote needs the majority of the others", configOf([]raft.ServerID{"b", "c", "d"}), map[raft.ServerID]int64{"b": 5, "c": 6}, 5},
	} {
		a := acks{self: "a"}
		a.begin(3, tc.c)
		for id, sent := range tc.sent {
			a.note(id, 3, peerAck{sent: sent}, tc.c)
		}
		if got := a.mark.Load(); got.sent != tc.want || got.term != 3 {
			t.Errorf("%s: quorum at %d of term %d, want %d of term 3", tc.name, got.sent, got.term, tc.want)
		}
	}
}

func TestAcksOfAnOlderTermProveNothing(t *testing.T) {
	c := configOf([]raft.ServerID{"a", "b", "c"})
	a := acks{self: "a"}
	a.note("b", 4, peerAck{sent: 100}, c)
	a.begin(5, c)
	if a.fresh(4, 101, 10) || a.fresh(5, 101, 10) {
		t.Error("an acknowledgement of term 4 counts after term 5 began")
	}
	a.note("b", 4, peerAck{sent: 110}, c) // overtaken on the wire
	if a.fresh(5, 111, 10) {
		t.Error("a late acknowledgement of term 4 counts in term 5")
	}
	a.note("b", 5, peerAck{sent: 110, match: 7}, c)
	a.note("b", 5, peerAck{sent: 105, match: 3}, c)
	if !a.fresh(5, 119, 10) || a.fresh(5, 120, 10) {
		t.Error("sent at 110, it must be fresh for less than 10")
	}
	if p, _ := a.peer("b", 5); p.match != 7 {
		t.Errorf("the follower's log went back to %d", p.match)
	}
}

func TestANewVoterCountsFromItsFirstRequestOn(t *testing.T) {
	a := acks{self: "a"}
	a.begin(1, configOf([]raft.ServerID{"a"}))
	if !a.fresh(1, 1<<40, 10) {
		t.Fatal("a cluster of one is not in touch with itself")
	}
	a.begin(1, configOf([]raft.ServerID{"a", "b"}))
	if a.fresh(1, 1<<40, 10) {
		t.Error("the majority of two was there before the second one answered")
	}
}

// A voter that has taken a request may be told to vote for the successor an instant later.
func TestWhatWasSentBeforeAHandOverProvesNothing(t *testing.T) {
	c := configOf([]raft.ServerID{"a", "b", "c"})
	a := acks{self: "a"}
	a.begin(5, c)
	a.note("b", 5, peerAck{sent: 900, match: 7}, c)
	a.discount(1000, c)
	if a.fresh(5, 1001, 200) {
		t.Error("an answer from before counts")
	}
	a.note("b", 5, peerAck{sent: 1000}, c) // was under way
	if a.fresh(5, 1020, 200) {
		t.Error("an answer that came afterwards, to a request from before, counts")
	}
	a.note("c", 6, peerAck{sent: 1000}, c)
	if a.fresh(6, 1020, 200) {
		t.Error("it counts in the next term")
	}
	a.note("c", 6, peerAck{sent: 1001}, c)
	if !a.fresh(6, 1020, 200) {
		t.Error("the successor was not elected, and the quorum is not seen again")
	}
}
