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
	RaftID    string   `json:"raft_id"`
	ClusterID string   `json:"cluster_id,omitempty"` // hex; "": none yet
	Empty     bool     `json:"empty"`                // neither log nor snapshot holds anything
	Listed    []string `json:"listed"`               // node ids in the order of its configuration file
	Resp      string   `json:"resp"`                 // its address for clients

	ConfigIndex uint64       `json:"config_index,omitempty"` // of raft's newest configuration
	Servers     []peerServer `json:"servers,omitempty"`      // that configuration; empty: none

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

// setConfiguration notes raft's configuration at index.
func (s *peerStatus) setConfiguration(index uint64, c raft.Configuration) {
	s.ConfigIndex, s.Servers = index, nil
	for _, sv := range c.Servers {
		s.Servers = append(s.Servers, peerServer{RaftID: string(sv.ID), Peer: string(sv.Address), Voter: sv.Suffrage == raft.Voter})
	}
}

// setClusterID notes the cluster id; zeros: none.
func (s *peerStatus) setClusterID(id [16]byte) {
	s.ClusterID = ""
	if id != [16]byte{} {
		s.ClusterID = hex.EncodeToString(id[:])
	}
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

// askStatus asks the peer at addr for its status. The error says why there is
// none; a refused handshake is a *refusal.
func (p *peers) askStatus(addr string, timeout time.Duration) (peerStatus, error) {
	b, o := p.call(addr, kindStatus, nil, timeout)
	if o == fsm.Applied {
		return parseStatus(b)
	}
	if err := p.lastError(addr); err != nil {
		return peerStatus{}, err
	}
	return peerStatus{}, errNoAnswer
}
