package cluster

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A follower that is removed is told nothing: the leader stops speaking to it. What
// it knows then is the configuration without it at best, and that it is not
// committed. So it asks the others: a configuration that is committed, newer than
// the newest one with this node, and without it, is final. A node that was away
// meanwhile finds out the same way.
//
// Only those are believed that this node has seen as members, or that list it: two
// nodes that were recovered, each for itself, from one cluster have one cluster id
// and one generation, and two histories since. That a stranger answers at a member's
// address says nothing of this node: the member may have lost its disk, and this node
// may be the last one that knows what was agreed. It stays up then, and warns.

// removedAfter is for how long a leader must have no place for a node on its way in
// before that one takes itself for removed, and for how long nobody may know a node
// before it warns of that.
const removedAfter = 10 * time.Second

// removal is what is known of this node's end as a member.
type removal struct {
	mu  sync.Mutex
	why error

	judging  sync.Mutex    // guards the next three: one judgement at a time
	unlisted lasting[bool] // it is on its way in, and a leader does not list it
	unknown  lasting[bool] // of those that answer nobody knows it
	doubted  bool          // that was warned of

	warned string // the peer address that was warned of; followMembership's
}

// reason is why this node is no member any more, nil: it is, or it is not known.
func (r *removal) reason() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// followMembership looks at each new configuration for what it says of this node.
func (n *Node) followMembership() {
	for {
		news := n.configs.news.next()
		n.judgeOwnConfiguration()
		select {
		case <-news:
		case <-n.stopping:
			return
		}
	}
}

// judgeOwnConfiguration looks at the configuration that is committed here.
func (n *Node) judgeOwnConfiguration() {
	c := n.committedConfiguration()
	if listed := n.listedAt(); listed > 0 && c.index > listed {
		n.noteRemoved(fmt.Sprintf("configuration %d", c.index), findOther(c.servers, n.raftID))
		return
	}
	if n.configs.hasVoted() && n.joining.wants() != joinsNot {
		if err := n.joining.set(joinsNot); err != nil {
			n.log.Warn("this node has its vote, and cannot forget that it wanted one", "error", err)
		}
	}
	newest, _ := n.newestConfiguration()
	n.warnOfAddress(newest)
}

// heardOfSelf is what the others' answers tell a node of itself.
type heardOfSelf struct {
	removed  string      // by what it is known that it is no member; "": it is not known
	other    string      // the member that has its node id now
	listed   *peerStatus // of those whose committed configuration lists it, the newest
	known    bool        // one that is believed told a configuration that lists it, or may be older than its membership
	unlisted string      // it is on its way in, and the committed configuration of this leader, or of a follower in touch with one, has no place for it
	doubt    string      // what was said against it that proves nothing
}

// hearOfSelf judges a round of answers. listed is the newest index at which this
// node was a member, 0: it is on its way in; believed says whose word counts.
func hearOfSelf(self string, listed uint64, believed func(*peerStatus) bool, answers []bootAnswer) (h heardOfSelf) {
	for _, a := range answers {
		s := a.status
		if s == nil {
			var ref *refusal
			if errors.As(a.err, &ref) && ref.code == refusedStranger && !ref.local {
				h.doubt = a.err.Error()
			}
			continue
		}
		is, other := s.lists(self)
		switch {
		case len(s.Servers) == 0:
		case !believed(s) && is:
		case !believed(s):
			h.doubt = fmt.Sprintf("%s, which this node has not seen as a member, does not list it", s.RaftID)
		case is:
			h.known = true
			if s.ConfigCommitted && s.newerThan(h.listed) {
				h.listed = s
			}
		case listed == 0:
			h.doubt = s.RaftID + " does not list it"
			if s.Current && s.ConfigCommitted {
				h.unlisted = s.RaftID
			}
		case s.ConfigCommitted && s.ConfigIndex > listed:
			h.removed, h.other = fmt.Sprintf("configuration %d, as %s says", s.ConfigIndex, s.RaftID), other
		default:
			h.known = true
		}
	}
	return h
}

// believed says that a status is of this node's cluster and generation, and of a
// node that it has seen as a member, or that lists it. As long as this node does not
// know its cluster's id, it must have seen the other one. A node on its way in has
// acknowledged nothing and has old members in its log at best: it believes any node
// of its cluster.
func (n *Node) believed(s *peerStatus) bool {
	of, seen := n.lineage(), n.configs.hasSeen(s.RaftID)
	if of.cluster == [16]byte{} {
		return seen
	}
	is, _ := s.lists(n.raftID)
	return s.isOf(of) && (seen || is || n.arrives())
}

// judgeMembership looks at what the others say of this node.
func (n *Node) judgeMembership(answers []bootAnswer) {
	n.removed.judging.Lock()
	defer n.removed.judging.Unlock()
	h := hearOfSelf(n.raftID, n.listedAt(), n.believed, answers)
	if h.removed != "" {
		n.noteRemoved(h.removed, h.other)
		return
	}
	if h.listed != nil {
		n.configs.noteTold(h.listed)
	}
	at, ran := n.arrivals.heard.Load(), n.awake.ran.Load()
	alone := !h.known && !n.Leading() && (at == 0 || n.clock.Boot()-at >= int64(removedAfter))
	unlisted, unknown := alone && h.unlisted != "", alone && h.doubt != ""
	if unlisted || !alone { // that nobody answers changes nothing
		if lasts := n.removed.unlisted.look(unlisted, ran); unlisted && lasts >= removedAfter {
			n.noteRemoved(fmt.Sprintf("%s is in touch with the leader, and has had no place for it for %s", h.unlisted, removedAfter), "")
			return
		}
	}
	lasts := n.removed.unknown.look(unknown, ran)
	switch {
	case !unknown:
		n.removed.doubted = false
	case lasts >= removedAfter && !n.removed.doubted:
		n.removed.doubted = true
		n.log.Warn("this node hears of no leader, and of those that answer nobody knows it; its data may be all that is left: keep it. Start the other members, or, if this node was removed from the cluster (limitd cluster nodes, asked of a member), stop it",
			"heard", h.doubt)
	}
}

// noteRemoved tells, once, that this node is no member any more.
func (n *Node) noteRemoved(how, other string) {
	what := fmt.Sprintf("%s was removed from the cluster (%s)", n.raftID, how)
	if other != "" {
		what += fmt.Sprintf(", and %s is the member %s now", other, n.cfg.ID)
	}
	n.removed.mu.Lock()
	if n.removed.why != nil {
		n.removed.mu.Unlock()
		return
	}
	err := &removedError{what + fmt.Sprintf(". To take it in again, move %s away and start it with an empty directory and --join", n.cfg.DataDir)}
	n.removed.why = err
	n.removed.mu.Unlock()
	n.leaderNews.announce()
	if n.cfg.Removed == nil {
		n.fatal(err)
		return
	}
	n.log.Warn("this node is no member any more", "reason", err)
	n.cfg.Removed(err)
}

// removedError is an ErrRemoved with its circumstances.
type removedError struct{ text string }

func (e *removedError) Error() string   { return e.text }
func (e *removedError) Is(t error) bool { return t == ErrRemoved }

// findOther is the member with the node id of raftID under another raft id.
func findOther(servers []raft.Server, raftID string) string {
	if s, ok := findServer(servers, nodeID(raftID)); ok && string(s.ID) != raftID {
		return string(s.ID)
	}
	return ""
}

// leaderByHearsay is the leader as a node knows it that has been removed, or whose
// disk hangs: it still hands its clients' calls on.
func (n *Node) leaderByHearsay() (raft.ServerID, string) {
	n.polled.mu.Lock()
	defer n.polled.mu.Unlock()
	var leads peerStatus
	var newest int64
	for _, p := range n.polled.peers {
		if p.status.Leads && p.heard > newest {
			leads, newest = p.status, p.heard
		}
	}
	// What it says of itself is newer than this node's log, which may hold nothing yet.
	for _, s := range append(leads.configuration(), n.configuration().Servers...) {
		if string(s.ID) == leads.RaftID {
			return s.ID, string(s.Address)
		}
	}
	return "", ""
}

// warnOfAddress warns of a member that cannot be reached where the others look for it.
func (n *Node) warnOfAddress(c indexedConfiguration) {
	own := n.cfg.self().Peer
	for _, s := range c.servers {
		if s.ID != n.serverID() || string(s.Address) == own || n.removed.warned == string(s.Address) {
			continue
		}
		n.removed.warned = string(s.Address)
		n.log.Warn("the cluster looks for this node at another peer address than the one that it listens on: start it with that one, or move the member",
			"cluster_has", s.Address, "listens_on", own, "to_move", joinLine(n.cfg.self(), ""))
	}
}
