package cluster

import "github.com/hashicorp/raft"

// clusterID is the id of the cluster, zeros before the first leader has made one.
func (n *Node) clusterID() [16]byte { return n.fsm.State().ClusterID }

// configuration is raft's newest configuration, committed or not; empty while
// this node knows of none.
func (n *Node) configuration() raft.Configuration {
	if r := n.raft.Load(); r != nil {
		f := r.GetConfiguration()
		if f.Error() == nil {
			return f.Configuration()
		}
	}
	return n.stored
}

// member is a member as the configuration file lists it, or as it told of itself.
func (n *Node) member(id raft.ServerID) Member {
	node := nodeID(string(id))
	m, ok := n.cfg.member(node)
	if !ok {
		m.ID = node
		if p, ok := n.polledPeer(node); ok && p.status.RaftID == string(id) {
			m.Resp = p.status.Resp
		}
	}
	return m
}

// lookup finds the raft id of the member at a peer address.
func (n *Node) lookup(addr string) string {
	for _, s := range n.configuration().Servers {
		if string(s.Address) == addr {
			return string(s.ID)
		}
	}
	return ""
}

// known says whether a raft id is a member's, or else which member has the same
// node id.
func (n *Node) known(raftID string) (ok bool, conflict string) {
	for _, s := range n.configuration().Servers {
		if string(s.ID) == raftID {
			return true, ""
		}
		if nodeID(string(s.ID)) == nodeID(raftID) {
			conflict = string(s.ID)
		}
	}
	return false, conflict
}
