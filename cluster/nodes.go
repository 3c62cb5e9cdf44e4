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

// poll asks the other nodes for their status every second.
func (n *Node) poll() {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	var told versions
	for {
		select {
		case <-n.stopping:
			return
		case <-t.C:
		}
		if n.raft.Load() == nil {
			continue // the bootstrap asks
		}
		var asked sync.WaitGroup
		for _, m := range n.roster() {
			if m.ID != n.cfg.ID {
				asked.Go(func() { n.askPeer(m) })
			}
		}
		asked.Wait()
		n.judgeDisks()
		n.tellVersions(&told)
	}
}

func (n *Node) askPeer(m NodeInfo) {
	s, err := n.peers.askStatus(m.Peer, checkEvery)
	if err != nil || nodeID(s.RaftID) != m.ID {
		return
	}
	n.polled.mu.Lock()
	defer n.polled.mu.Unlock()
	if n.polled.peers == nil {
		n.polled.peers = map[string]polledPeer{}
	}
	n.polled.peers[m.ID] = polledPeer{s, n.clock.Boot()}
}

func (n *Node) polledPeer(id string) (polledPeer, bool) {
	n.polled.mu.Lock()
	defer n.polled.mu.Unlock()
	p, ok := n.polled.peers[id]
	return p, ok
}

// judgeDisks finds out whether so many voters have little disk left that a
// majority would be lost with them.
func (n *Node) judgeDisks() {
	voters, low := 0, 0
	for _, s := range n.configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == n.serverID() {
			if n.diskLow.Load() {
				low++
			}
		} else if p, ok := n.polledPeer(nodeID(string(s.ID))); ok && p.status.DiskLow {
			low++
		}
	}
	n.votersLow.Store(voters > 0 && voters-low < voters/2+1) // no voters: not a member yet
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
		if r.ID == n.cfg.ID {
			r.ContactMS, r.Applied, r.Version = 0, n.fsm.Applied(), n.cfg.Version
			continue
		}
		heard := int64(0)
		if p, ok := n.polledPeer(r.ID); ok {
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
