package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// NodeInfo is one row of RL.CLUSTER NODES.
type NodeInfo struct {
	ID, RaftID, Resp, Peer string // RaftID: "" of a listed node that is no member
	Role                   string // leader, voter, nonvoter; none: listed, and no member
	ContactMS              int64  // since this node last heard from it; 0 for itself, -1 unknown
	Applied                uint64
	Version                string
}

// pollCache holds what the peers said of themselves.
type pollCache struct {
	mu    sync.Mutex
	peers map[string]polledPeer // by node id
}

type polledPeer struct {
	status peerStatus
	heard  int64 // boot clock
}

// poll asks the other nodes for their status every second, and at once when there
// is a configuration without this node.
func (n *Node) poll() {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	var told versions
	for {
		news := n.configs.news.next()
		if n.configs.isListed(n.serverID()) {
			news = nil
		}
		select {
		case <-n.stopping:
			return
		case <-news:
		case <-t.C:
		}
		if n.raft.Load() == nil {
			continue // the bootstrap asks
		}
		n.pollOnce()
		n.tellVersions(&told)
	}
}

// pollOnce asks all once, and judges by what they say.
func (n *Node) pollOnce() {
	var (
		mu      sync.Mutex
		asked   sync.WaitGroup
		answers []bootAnswer
	)
	for _, m := range n.roster() {
		if m.RaftID == n.raftID || m.ID == n.cfg.ID && m.RaftID == "" || m.Peer == n.cfg.self().Peer {
			continue // itself, or who was there before: a node that joins has old members in its log
		}
		asked.Go(func() {
			a := n.askPeer(m)
			mu.Lock()
			answers = append(answers, a)
			mu.Unlock()
		})
	}
	asked.Wait()
	n.judgeDisks()
	n.judgeMembership(answers)
}

func (n *Node) askPeer(m NodeInfo) bootAnswer {
	a := bootAnswer{member: Member{ID: m.ID, Peer: m.Peer}}
	if a.err = n.trans.severed(raft.ServerID(m.RaftID)); a.err != nil {
		return a
	}
	s, err := n.peers.askAnyone(m.Peer, checkEvery)
	if a.err = err; err != nil {
		return a
	}
	a.status = &s
	if nodeID(s.RaftID) != m.ID || m.RaftID != "" && s.RaftID != m.RaftID {
		return a
	}
	n.notePolled(s)
	return a
}

func (n *Node) notePolled(s peerStatus) {
	n.polled.mu.Lock()
	if n.polled.peers == nil {
		n.polled.peers = map[string]polledPeer{}
	}
	led := n.polled.peers[nodeID(s.RaftID)].status.Leads
	n.polled.peers[nodeID(s.RaftID)] = polledPeer{s, n.clock.Boot()}
	n.polled.mu.Unlock()
	if s.Leads && !led {
		n.leaderNews.announce() // for those that wait on a node which knows it by hearsay
	}
}

func (n *Node) polledPeer(id string) (polledPeer, bool) {
	n.polled.mu.Lock()
	defer n.polled.mu.Unlock()
	p, ok := n.polled.peers[id]
	return p, ok
}

// roster is the configuration file's nodes and raft's members, each once.
func (n *Node) roster() []NodeInfo {
	leader, _ := n.leader()
	var rows []NodeInfo
	at := map[string]int{}
	for _, m := range n.cfg.Members {
		at[m.ID] = len(rows)
		rows = append(rows, NodeInfo{ID: m.ID, Resp: m.Resp, Peer: m.Peer, Role: "none", ContactMS: -1})
	}
	for _, s := range n.configuration().Servers {
		id := nodeID(string(s.ID))
		i, ok := at[id]
		if !ok {
			i = len(rows)
			rows = append(rows, NodeInfo{ID: id, ContactMS: -1})
		}
		r := &rows[i]
		r.RaftID, r.Peer = string(s.ID), string(s.Address)
		switch {
		case s.ID == leader:
			r.Role = "leader"
		case s.Suffrage == raft.Voter:
			r.Role = "voter"
		default:
			r.Role = "nonvoter"
		}
	}
	return rows
}

// Nodes lists the nodes of the cluster as this one sees them.
func (n *Node) Nodes() []NodeInfo {
	rows := n.roster()
	leader, _ := n.leader()
	boot := n.clock.Boot()
	for i := range rows {
		r := &rows[i]
		if r.Resp == "" && r.RaftID != "" {
			r.Resp = n.member(raft.ServerID(r.RaftID)).Resp
		}
		if r.ID == n.cfg.ID {
			r.ContactMS, r.Applied, r.Version = 0, n.fsm.Applied(), n.cfg.Version
			continue
		}
		heard := int64(0)
		if p, ok := n.polledPeer(r.ID); ok && (r.RaftID == "" || r.RaftID == p.status.RaftID) {
			heard, r.Applied, r.Version = p.heard, p.status.Applied, p.status.Version
		}
		if l := n.raft.Load(); l != nil {
			if ack, ok := n.acks.peer(raft.ServerID(r.RaftID), l.CurrentTerm()); ok {
				heard = max(heard, ack.heard)
			}
		}
		if r.RaftID != "" && raft.ServerID(r.RaftID) == leader {
			heard = max(heard, n.arrivals.heard.Load())
		}
		if heard != 0 {
			r.ContactMS = time.Duration(max(boot-heard, 0)).Milliseconds()
		}
	}
	return rows
}
