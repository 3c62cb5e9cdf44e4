package cluster

import (
	"errors"
	"slices"

	"github.com/hashicorp/raft"
)

// errNoVote answers a leader that would hand over to a node without a vote.
var errNoVote = errors.New("this node has no vote, as far as it knows, and cannot lead")

// votes says that this node has a vote by its newest configuration. Raft makes a
// candidate of any node that is told to be one, and the voters do not ask
// (admitCandidate).
func (n *Node) votes() bool {
	return slices.ContainsFunc(n.configuration().Servers, func(s raft.Server) bool {
		return s.Suffrage == raft.Voter && s.ID == n.serverID()
	})
}

// admitCandidate lets a member stand for election that has no vote by this node's
// configuration. Raft refuses it. But this node may lag behind, and the other have
// got its vote since; then neither could be elected though the two are a majority,
// for as long as the third is away. A server grants its vote whatever its
// configuration says of the candidate (Ongaro, Consensus, section 4.1): one that has
// lost its vote, and does not know it, lacks the entry that says so, and is refused
// for its log.
//
// Raft looks the candidate up by the header's ID, and uses that for nothing else.
func (n *Node) admitCandidate(h *raft.RPCHeader) {
	servers := n.configuration().Servers
	votes := func(s raft.Server) bool { return s.Suffrage == raft.Voter }
	if slices.ContainsFunc(servers, func(s raft.Server) bool { return votes(s) && s.ID == raft.ServerID(h.ID) }) {
		return
	}
	if i := slices.IndexFunc(servers, votes); i >= 0 {
		h.ID = []byte(servers[i].ID)
	}
}
