package cluster

import (
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

// removedAfter is for how long nobody may know this node before it takes itself
// for removed though no configuration says so.
const removedAfter = 10 * time.Second

// removal is what is known of this node's end as a member.
type removal struct {
	mu  sync.Mutex
	why error

	unknown lasting[bool] // of those that answer nobody knows it; pollOnce's
	warned  string        // the peer address that was warned of; followMembership's
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
	removed string      // by what it is known that it is no member; "": it is not known
	other   string      // the member that has its node id now
	listed  *peerStatus // of those whose committed configuration lists it, the newest
	known   bool        // a node of its cluster told a configuration that lists it, or may be older than its membership
	refusal string      // why it was refused, or who does not list it while it is on its way in
}

// hearOfSelf judges a round of answers. listed is the newest index at which this
// node was a member, 0: it is on its way in; fellow says who is of its cluster.
func hearOfSelf(self string, listed uint64, fellow func(*peerStatus) bool, answers []bootAnswer) (h heardOfSelf) {
	for _, a := range answers {
		s := a.status
		switch {
		case s == nil && h.refusal == "" && refusedAs(a.err, refusedStranger, refusedReceiver):
			h.refusal = a.err.Error()
		case s == nil || !fellow(s) || len(s.Servers) == 0:
		default:
			is, other := s.lists(self)
			h.known = h.known || is || listed > 0
			switch {
			case is && s.ConfigCommitted && s.newerThan(h.listed):
				h.listed = s
			case is:
			case listed == 0:
				h.refusal = s.RaftID + " does not list it"
			case s.ConfigCommitted && s.ConfigIndex > listed:
				h.removed, h.other = fmt.Sprintf("configuration %d, as %s says", s.ConfigIndex, s.RaftID), other
			}
		}
	}
	return h
}

// fellow says that a status is of a node of this node's cluster. As long as this
// node does not know its cluster's id, it is enough that it knows the raft id.
func (n *Node) fellow(s *peerStatus) bool {
	of := n.lineage().cluster
	return s.isOf(of) || of == [16]byte{} && n.configs.hasSeen(s.RaftID)
}

// judgeMembership looks at what the others say of this node.
func (n *Node) judgeMembership(answers []bootAnswer) {
	h := hearOfSelf(n.raftID, n.listedAt(), n.fellow, answers)
	if h.listed != nil {
		n.configs.noteTold(h.listed)
	}
	at := n.arrivals.heard.Load()
	heard := at != 0 && n.clock.Boot()-at < int64(removedAfter)
	unknown := h.refusal != "" && !h.known && !heard && !n.Leading()
	lasts := n.removed.unknown.look(unknown, n.awake.ran.Load())
	switch {
	case h.removed != "":
		n.noteRemoved(h.removed, h.other)
	case unknown && lasts >= removedAfter:
		n.noteRemoved(fmt.Sprintf("nobody has known it for %s: %s", removedAfter, h.refusal), "")
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
	var id raft.ServerID
	var newest int64
	for _, p := range n.polled.peers {
		if p.status.Leads && p.heard > newest {
			id, newest = raft.ServerID(p.status.RaftID), p.heard
		}
	}
	for _, s := range n.configuration().Servers {
		if s.ID == id {
			return id, string(s.Address)
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
