package cluster

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// acks is what a leader knows of its followers from the answers to its
// AppendEntries: when the answered request was *sent*, and how much of the log
// the follower has. A follower that took a request of this term votes for nobody
// else until a heartbeat timeout after the request arrived, so the send times of a
// quorum bound the time in which there is no other leader.
type acks struct {
	self raft.ServerID
	mark atomic.Pointer[quorumMark]

	mu    sync.Mutex
	term  uint64
	floor int64 // boot clock; what was sent up to then bounds nothing, in any term
	peers map[raft.ServerID]peerAck
}

// peerAck is the newest acknowledged request to one follower, by send time.
type peerAck struct {
	sent  int64  // boot clock
	heard int64  // boot clock, when the answer came
	match uint64 // the follower's log is this node's up to here
}

// quorumMark says that in term, a quorum acknowledged requests sent at sent or
// later; this node counts as always.
type quorumMark struct {
	term uint64
	sent int64
}

const (
	never  = math.MinInt64
	always = math.MaxInt64
)

// fresh says whether the quorum's mark is of term and younger than limit at boot.
func (a *acks) fresh(term uint64, boot, limit int64) bool {
	m := a.mark.Load()
	return m != nil && m.term == term && m.sent > boot-limit
}

// note takes down an answer of a follower. An answer of an older term than the
// newest one noted is old news.
func (a *acks) note(id raft.ServerID, term uint64, ack peerAck, c raft.Configuration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.enter(term) {
		return
	}
	old := a.peers[id]
	if ack.sent < old.sent { // answers may overtake one another: heartbeats have their own connection
		ack.sent = old.sent
	}
	ack.match = max(ack.match, old.match)
	a.peers[id] = ack
	a.recompute(c)
}

// begin recomputes the mark for a configuration that is in force from now on,
// before a request under it leaves.
func (a *acks) begin(term uint64, c raft.Configuration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.enter(term) {
		a.recompute(c)
	}
}

// discount says that requests sent up to boot prove nothing, whenever they are answered:
// followers may vote for another one though they took them.
func (a *acks) discount(boot int64, c raft.Configuration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.floor = max(a.floor, boot)
	a.recompute(c)
}

func (a *acks) enter(term uint64) bool {
	if term < a.term {
		return false
	}
	if term > a.term || a.peers == nil {
		a.term, a.peers = term, map[raft.ServerID]peerAck{}
	}
	return true
}

// recompute finds the send time that a quorum of the voters has reached.
func (a *acks) recompute(c raft.Configuration) {
	var sent []int64
	need, voters := 0, 0
	for _, s := range c.Servers {
		switch {
		case s.Suffrage != raft.Voter:
			continue
		case s.ID == a.self:
			need--
		default:
			t := int64(never)
			if p, ok := a.peers[s.ID]; ok && p.sent > a.floor {
				t = p.sent
			}
			sent = append(sent, t)
		}
		voters++
	}
	need += voters/2 + 1
	m := &quorumMark{term: a.term, sent: always}
	if need > 0 {
		slices.Sort(sent)
		m.sent = never
		if need <= len(sent) {
			m.sent = sent[len(sent)-need]
		}
	}
	a.mark.Store(m)
}

// peer is what is known of one follower in term.
func (a *acks) peer(id raft.ServerID, term uint64) (peerAck, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if term != a.term {
		return peerAck{}, false
	}
	p, ok := a.peers[id]
	return p, ok
}
