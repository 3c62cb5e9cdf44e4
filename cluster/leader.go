package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// AwaitLeader waits until a leader is known, here or elsewhere.
func (n *Node) AwaitLeader(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		news := n.leaderNews.next()
		if n.leaderKnown() {
			return true
		}
		select {
		case <-news:
		case <-timer.C:
			return n.leaderKnown()
		case <-n.stopping:
			return false
		}
	}
}

func (n *Node) leaderKnown() bool {
	if n.Leading() {
		return true
	}
	id, _ := n.leader()
	return id != "" && id != n.serverID()
}

// leader is who raft takes for the leader; a leader that may not decide yet is
// one too. Raft hears nothing of the next one while it waits for the disk.
func (n *Node) leader() (raft.ServerID, string) {
	r := n.raft.Load()
	if r == nil {
		return "", ""
	}
	addr, id := r.LeaderWithID()
	if id == "" && n.removed.reason() != nil || id == n.serverID() && n.stuck(n.clock.Boot()) {
		return n.leaderByHearsay()
	}
	return id, string(addr)
}

// Forward sends payload to the leader's handler.
//
//	Applied: the reply is its answer
//	Refused: certainly no leader took it
//	Unknown: neither is known
func (n *Node) Forward(payload []byte, timeout time.Duration) ([]byte, fsm.Outcome) {
	id, addr := n.leader()
	if id == "" || id == n.serverID() {
		return nil, fsm.Refused
	}
	return n.peers.call(addr, kindForward, payload, timeout)
}

// watchLeader announces what raft observes of other nodes' leaderships.
func (n *Node) watchLeader(seen <-chan raft.Observation) {
	for {
		select {
		case <-seen:
			n.leaderNews.announce()
		case <-n.stopping:
			return
		}
	}
}

// broadcast wakes all who wait for the next news.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
