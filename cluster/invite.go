package cluster

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// inviteTimeout is what a node that waits has to answer an invitation.
const inviteTimeout = 3 * time.Second

// invitation is what the leader asks the node at a peer address (kindInvite) before
// it takes it in: so that a mistaken address, a disk with old data and a node of
// another cluster show before they are in the configuration.
type invitation struct {
	RaftID string `json:"raft_id,omitempty"` // of the member that is meant, if it is one already
	Voter  bool   `json:"voter"`             // it shall get a vote
	Leader string `json:"leader"`            // the leader's peer address

	ClusterID  string `json:"cluster_id,omitempty"` // hex, of the leader; with its generation
	Generation uint64 `json:"generation,omitempty"`
}

// lineage is what the leader belongs to; zeros: it does not say.
func (q *invitation) lineage() (of lineage, err error) {
	b, err := hex.DecodeString(q.ClusterID)
	if err != nil || len(b) != 0 && len(b) != len(of.cluster) {
		return of, fmt.Errorf("%.40q is no cluster id", q.ClusterID)
	}
	of.generation = q.Generation
	copy(of.cluster[:], b)
	return of, nil
}

// takeIn makes a node that waits a non-voter. For a member it changes the peer
// address, if it has another one.
func (n *Node) takeIn(ctx context.Context, base indexedConfiguration, c Change) error {
	member, is := findServer(base.servers, c.ID)
	byRaftID := nodeID(c.ID) != ""
	if is && byRaftID && string(member.Address) == c.Peer {
		return nil
	}
	if byRaftID && !is {
		if s, ok := findServer(base.servers, nodeID(c.ID)); ok {
			return alreadyMember(s)
		}
	}
	for _, s := range base.servers {
		if string(s.Address) == c.Peer && s.ID != member.ID {
			return fmt.Errorf("%s is the peer address of %s: give %s another one (node.peer, --peer-listen), or remove %s first: limitd cluster remove %s",
				c.Peer, name(s), c.ID, name(s), name(s))
		}
	}
	if is && member.ID == n.serverID() {
		if own := n.cfg.self().Peer; c.Peer != string(member.Address) && c.Peer != own { // nobody asks it, so nobody would notice
			return fmt.Errorf("%s leads, and its peer address is %s, not %s: start it with that one first (node.peer, --peer-listen), then move it", name(member), own, c.Peer)
		}
		return n.moveTo(ctx, base, member, c.Peer)
	}
	status, err := n.invite(c, invitation{RaftID: string(member.ID), Voter: !c.NonVoter, Leader: n.cfg.self().Peer})
	switch {
	case err != nil && is && !byRaftID && refusedAs(err, refusedReceiver, refusedStranger):
		return alreadyMember(member)
	case err != nil:
		return err
	case status.RaftID != c.ID && nodeID(status.RaftID) != c.ID:
		return fmt.Errorf("%s answers at %s, not %s: correct the peer address", status.RaftID, c.Peer, c.ID)
	case is && status.RaftID == string(member.ID):
		return n.moveTo(ctx, base, member, c.Peer)
	}
	if s, ok := findServer(base.servers, nodeID(status.RaftID)); ok {
		return alreadyMember(s)
	}
	return n.submit(ctx, func(r *raft.Raft) raft.Future {
		return r.AddNonvoter(raft.ServerID(status.RaftID), raft.ServerAddress(c.Peer), base.index, n.cfg.Heartbeat)
	})
}

// moveTo gives a member, whatever its vote, another peer address.
func (n *Node) moveTo(ctx context.Context, base indexedConfiguration, s raft.Server, addr string) error {
	if string(s.Address) == addr {
		return nil
	}
	return n.submit(ctx, func(r *raft.Raft) raft.Future {
		if s.Suffrage == raft.Voter {
			return r.AddVoter(s.ID, raft.ServerAddress(addr), base.index, n.cfg.Heartbeat)
		}
		return r.AddNonvoter(s.ID, raft.ServerAddress(addr), base.index, n.cfg.Heartbeat)
	})
}

func alreadyMember(s raft.Server) error {
	return fmt.Errorf("%s is a member already, as %s with another data directory: put that one back, or remove it first: limitd cluster remove %s",
		name(s), s.ID, name(s))
}

// invite asks the node that waits at a peer address. The answer is its status.
func (n *Node) invite(c Change, q invitation) (peerStatus, error) {
	of := n.lineage()
	q.ClusterID, q.Generation = hex.EncodeToString(of.cluster[:]), of.generation
	b, err := json.Marshal(q)
	if err != nil {
		return peerStatus{}, err
	}
	reply, o := n.peers.call(c.Peer, kindInvite, b, inviteTimeout)
	if o != fsm.Applied || len(reply) == 0 {
		err := errNoAnswer
		if last := n.peers.lastError(c.Peer); last != nil {
			err = last
		}
		var ref *refusal
		if errors.As(err, &ref) {
			return peerStatus{}, fmt.Errorf("the node at %s cannot join: %w", c.Peer, err)
		}
		return peerStatus{}, notNow("no node that waits to join was reached at %s: %w", c.Peer, err)
	}
	if reply[0] != 0 {
		return peerStatus{}, fmt.Errorf("the node at %s cannot join: %s", c.Peer, reply[1:])
	}
	status, err := parseStatus(reply[1:])
	if err == nil {
		err = n.unreadable(status)
	}
	if err == nil {
		n.notePolled(status) // so that it is known from its first day on what it reads
	}
	return status, err
}

// refusedAs says that a handshake was refused for one of these reasons.
func refusedAs(err error, codes ...refusalCode) bool {
	var ref *refusal
	if !errors.As(err, &ref) {
		return false
	}
	for _, c := range codes {
		if ref.code == c {
			return true
		}
	}
	return false
}

// answerInvite handles kindInvite: an invitation as JSON in; a 0 byte and this node's
// status out, or a 1 byte and why it cannot join.
func (n *Node) answerInvite(payload []byte, _ time.Duration, reply func([]byte)) {
	n.background.Go(func() {
		var q invitation
		err := json.Unmarshal(payload, &q)
		if err == nil {
			err = n.accept(q)
		}
		var status []byte
		if err == nil {
			status, err = json.Marshal(n.ownStatus())
		}
		if err != nil {
			reply(append([]byte{1}, err.Error()...))
			return
		}
		reply(append([]byte{0}, status...))
	})
}

// accept takes an invitation, or says why not. Two clusters may ask at the same time: the
// second one would send its log to a member of the first.
func (n *Node) accept(q invitation) error {
	if q.RaftID == n.raftID {
		return nil
	}
	of, err := q.lineage()
	if err != nil {
		return fmt.Errorf("%s: %w", n.raftID, err)
	}
	n.joining.mu.Lock()
	defer n.joining.mu.Unlock()
	if !n.empty() || n.raft.Load() != nil {
		return fmt.Errorf("%s holds data of a cluster already: stop it, move its data directory away, and start it with --join", n.raftID)
	}
	if into := n.joining.into.Load(); into != nil && *into != of {
		return fmt.Errorf("%s was invited into cluster %x, generation %d, a moment ago, and joins no other one until it is started again", n.raftID, into.cluster, into.generation)
	}
	if err := n.joining.setLocked(intentOf(!q.Voter)); err != nil {
		return fmt.Errorf("%s: %w", n.raftID, err)
	}
	n.joining.leader = q.Leader
	if of.cluster != [16]byte{} {
		n.joining.into.Store(&of)
	}
	return nil
}

// checkPeerAddress says what is wrong with the peer address of a node that joins.
func (n *Node) checkPeerAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil || host == "" || port == "" || port == "0":
		return fmt.Errorf("%q is no peer address: host:port", addr)
	case !n.cfg.Insecure && !isLoopback(host):
		return fmt.Errorf("peer address %s is beyond loopback and the peer port has no TLS: set peers.insecure = true only if nobody else can reach that network", addr)
	}
	return nil
}
