package cluster

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// maxStatus bounds an encoded peerStatus.
const maxStatus = 64 << 10

// peerStatus is what a node says of itself (kindStatus). It travels as JSON:
// fields may be added, and a reader skips those that it does not know.
type peerStatus struct {
	RaftID     string   `json:"raft_id"`
	ClusterID  string   `json:"cluster_id,omitempty"` // hex; "": none yet
	Generation uint64   `json:"generation,omitempty"` // of the cluster; 0: none yet
	Empty      bool     `json:"empty"`                // neither log nor snapshot holds anything
	Listed     []string `json:"listed"`               // node ids in the order of its configuration file
	Resp       string   `json:"resp"`                 // its address for clients

	ConfigIndex     uint64       `json:"config_index,omitempty"`     // of the newest configuration that it knows
	ConfigCommitted bool         `json:"config_committed,omitempty"` // that one is committed for certain
	Servers         []peerServer `json:"servers,omitempty"`          // that configuration; empty: none
	WantsVote       bool         `json:"wants_vote,omitempty"`       // it joins as a voter and has no vote yet
	Leads           bool         `json:"leads,omitempty"`            // it may decide
	Current         bool         `json:"current,omitempty"`          // it leads, or has applied what the leader committed a moment ago

	Applied  uint64 `json:"applied"`
	Time     int64  `json:"time"` // cluster time of the applied state, ns
	Version  string `json:"version"`
	DiskFree int64  `json:"disk_free"` // bytes
	DiskLow  bool   `json:"disk_low"`
	Wall     int64  `json:"wall"` // wall clock, unix ns

	ReadsEntry  uint8 `json:"reads_entry"`  // newest version of the entry that it reads; 0: 1
	ReadsStream uint8 `json:"reads_stream"` // of the snapshot stream
}

// peerServer is a member in raft's configuration.
type peerServer struct {
	RaftID string `json:"raft_id"`
	Peer   string `json:"peer"`
	Voter  bool   `json:"voter"`
}

// setConfiguration notes a configuration.
func (s *peerStatus) setConfiguration(c indexedConfiguration, committed bool) {
	s.ConfigIndex, s.ConfigCommitted, s.Servers = c.index, committed, nil
	for _, sv := range c.servers {
		s.Servers = append(s.Servers, peerServer{RaftID: string(sv.ID), Peer: string(sv.Address), Voter: sv.Suffrage == raft.Voter})
	}
}

// configuration is what setConfiguration noted.
func (s *peerStatus) configuration() []raft.Server {
	var servers []raft.Server
	for _, sv := range s.Servers {
		suffrage := raft.Nonvoter
		if sv.Voter {
			suffrage = raft.Voter
		}
		servers = append(servers, raft.Server{Suffrage: suffrage, ID: raft.ServerID(sv.RaftID), Address: raft.ServerAddress(sv.Peer)})
	}
	return servers
}

// stands says that the configuration is not one that may still be taken back: it is
// committed, or the one that the cluster was founded with.
func (s *peerStatus) stands() bool { return s.ConfigCommitted || s.ConfigIndex <= 1 }

// newerThan says that its configuration tells more of the cluster than that of o.
func (s *peerStatus) newerThan(o *peerStatus) bool {
	if o == nil || s.stands() != o.stands() {
		return o == nil || s.stands()
	}
	return s.ConfigIndex > o.ConfigIndex
}

// lists says whether raftID is in its configuration, or else which member has the
// same node id.
func (s *peerStatus) lists(raftID string) (ok bool, other string) {
	for _, sv := range s.Servers {
		if sv.RaftID == raftID {
			return true, ""
		}
		if nodeID(sv.RaftID) == nodeID(raftID) {
			other = sv.RaftID
		}
	}
	return false, other
}

// setLineage notes what it belongs to; zeros: nothing yet.
func (s *peerStatus) setLineage(of lineage) {
	s.ClusterID, s.Generation = "", of.generation
	if of.cluster != [16]byte{} {
		s.ClusterID = hex.EncodeToString(of.cluster[:])
	}
}

// isOf says that it is of this generation of this cluster.
func (s *peerStatus) isOf(of lineage) bool {
	return of.cluster != [16]byte{} && s.ClusterID == hex.EncodeToString(of.cluster[:]) && s.Generation == of.generation
}

// answerStatus is the handler of kindStatus. status must not block.
func answerStatus(status func() peerStatus) rpcHandler {
	return func(_ []byte, _ time.Duration, reply func([]byte)) {
		b, err := json.Marshal(status())
		if err != nil || len(b) > maxStatus {
			b = nil
		}
		reply(b)
	}
}

func parseStatus(b []byte) (s peerStatus, err error) {
	if len(b) > maxStatus {
		return s, fmt.Errorf("status of a peer: %d bytes, at most %d", len(b), maxStatus)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("status of a peer: %w", err)
	}
	ids := []string{s.RaftID}
	for _, sv := range s.Servers {
		ids = append(ids, sv.RaftID)
	}
	for _, id := range ids {
		if nodeID(id) == "" || checkRaftID(id) != nil {
			return peerStatus{}, fmt.Errorf("status of a peer: %.40q is no raft id", id)
		}
	}
	return s, nil
}

// errNoAnswer is for a peer that was reached and did not answer.
var errNoAnswer = errors.New("no answer")

// askStatus asks the member at addr for its status. The error says why there is
// none; a refused handshake is a *refusal.
func (p *peers) askStatus(addr string, timeout time.Duration) (peerStatus, error) {
	return askOver(p.link(addr), timeout)
}

// askAnyone is askStatus of whoever answers at addr: a node that was away may look
// for a member where there is another one now, which can tell what has become of both.
func (p *peers) askAnyone(addr string, timeout time.Duration) (peerStatus, error) {
	return askOver(p.linkTo(linkKey{addr: addr, anyone: true}), timeout)
}

func askOver(l *link, timeout time.Duration) (peerStatus, error) {
	if l == nil {
		return peerStatus{}, errPeersClosed
	}
	b, o := l.call(kindStatus, nil, timeout)
	if o == fsm.Applied {
		return parseStatus(b)
	}
	if err := l.lastError(); err != nil {
		return peerStatus{}, err
	}
	return peerStatus{}, errNoAnswer
}
