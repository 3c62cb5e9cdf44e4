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
	mu       sync.Mutex
	why      error
	unknown  lasting[string] // by the words of those that refuse this node
	mismatch string          // peer address that was warned of
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
	n.warnOfAddress(c)
}

// judgeMembership looks at what the others say of this node.
func (n *Node) judgeMembership(answers []bootAnswer) {
	listed := n.listedAt()
	var refusals string
	known := false
	for _, a := range answers {
		switch s := a.status; {
		case s == nil:
			if refusedAs(a.err, refusedStranger, refusedReceiver) && refusals == "" {
				refusals = a.err.Error()
			}
		case listed == 0 || !n.isFellow(s):
		default:
			known = true
			member, other := s.lists(n.raftID)
			if !member && s.ConfigCommitted && s.ConfigIndex > listed {
				n.noteRemoved(fmt.Sprintf("configuration %d, as %s says", s.ConfigIndex, s.RaftID), other)
				return
			}
		}
	}
	n.removed.mu.Lock()
	heard := n.clock.Boot()-n.arrivals.heard.Load() < int64(removedAfter) && n.arrivals.heard.Load() != 0
	if known || heard || n.Leading() {
		refusals = ""
	}
	unknown := n.removed.unknown.look(refusals, n.awake.ran.Load())
	n.removed.mu.Unlock()
	if refusals != "" && unknown > removedAfter {
		n.noteRemoved(fmt.Sprintf("nobody knows it for %s: %s", removedAfter, refusals), "")
	}
}

// isFellow says that a peer is of this node's cluster. A node that was started again
// and has heard of no commit yet has not applied the cluster's id; it knows the
// raft ids of the members.
func (n *Node) isFellow(s *peerStatus) bool {
	own := n.clusterID()
	if own != [16]byte{} {
		return s.isOf(own)
	}
	_, ok := findServer(n.configuration().Servers, s.RaftID)
	return ok
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

// leaderByHearsay is the leader as a node knows it that has been removed: it still
// hands its clients' calls on for a moment.
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
		if s.ID != n.serverID() || string(s.Address) == own || n.removed.mismatch == string(s.Address) {
			continue
		}
		n.removed.mismatch = string(s.Address)
		n.log.Warn("the cluster looks for this node at another peer address than the one that it listens on: start it with that one, or move the member",
			"cluster_has", s.Address, "listens_on", own, "to_move", joinLine(n.cfg.self(), ""))
	}
}
