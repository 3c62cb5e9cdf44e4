package cluster

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	transportTimeout = 3 * time.Second
	// waitingRPCs is how many requests may wait for raft's main loop and still be
	// noted when they arrive. Each connection has one at most.
	waitingRPCs = 64
)

// errStalled is why a leader whose disk does not answer sends nothing.
var errStalled = errors.New("the disk of this node has not finished a write for a heartbeat timeout; it stays silent so that the others elect a leader")

// transport is raft's network transport, seen through by the node: it notes which
// requests were acknowledged and which arrived, and keeps a leader silent whose
// disk is stuck. All requests go through raft's main loop, heartbeats too: raft's
// shortcut for them changes term and state beside it.
type transport struct {
	*raft.NetworkTransport // concrete, so that its optional methods stay visible
	node                   *Node

	in   chan raft.RPC
	done chan struct{}
	cut  atomic.Pointer[func(raft.ServerID) error] // tests cut the network here

	installs atomic.Int64 // snapshots that are being installed here
	bodies   sync.Map     // *body: of them
	progress atomic.Int64 // boot clock of the newest step of one
	holds    holds
	slow     atomic.Pointer[func(io.Reader) io.Reader] // tests hold a snapshot up here that is being sent
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
	_ raft.WithClose   = (*transport)(nil)
)

func newTransport(n *Node, stream raft.StreamLayer, logger hclog.Logger) *transport {
	t := &transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:  stream,
			MaxPool: 3,
			Timeout: transportTimeout,
			// More in flight can wedge the replication to a follower for good after
			// one failed append, with heartbeats going on.
			MaxRPCsInFlight: 1,
			Logger:          logger,
		}),
		node: n,
		in:   make(chan raft.RPC, waitingRPCs),
		done: make(chan struct{}),
	}
	go t.receive()
	return t
}

// SetHeartbeatHandler implements raft.Transport; there is no shortcut.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) {}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.in }

// Close implements raft.WithClose.
func (t *transport) Close() error {
	select {
	case <-t.done:
	default:
		close(t.done)
	}
	return t.NetworkTransport.Close()
}

// receive hands requests on to raft and notes what they tell.
func (t *transport) receive() {
	for {
		var rpc raft.RPC
		select {
		case rpc = <-t.NetworkTransport.Consumer():
		case <-t.done:
			return
		}
		switch req := rpc.Command.(type) {
		case *raft.AppendEntriesRequest:
			t.node.heard(req)
			if r := t.node.raft.Load(); r != nil && req.Term > r.CurrentTerm() {
				t.freeLoop()
			}
		case *raft.InstallSnapshotRequest:
			rpc = t.watchInstall(rpc)
		case *raft.RequestVoteRequest:
			t.freeLoop()
			t.node.admitCandidate(&req.RPCHeader)
		case *raft.RequestPreVoteRequest:
			t.freeLoop()
			t.node.admitCandidate(&req.RPCHeader)
		case *raft.TimeoutNowRequest:
			if !t.node.votes() {
				rpc.Respond(&raft.TimeoutNowResponse{}, errNoVote)
				continue
			}
		}
		if !t.deliver(rpc) {
			return
		}
	}
}

// deliver gives raft a request, a node's own too.
func (t *transport) deliver(rpc raft.RPC) bool {
	select {
	case t.in <- rpc:
		return true
	case <-t.done:
		return false
	}
}

// heard notes a leader's request. One of an older term is no leader's any more,
// and a new leader's first ones do not tell all that was committed before it. When
// this process has just gone on after a pause, nobody knows how long a request has
// lain in the kernel: for a heartbeat timeout none proves anything.
func (n *Node) heard(req *raft.AppendEntriesRequest) {
	r := n.raft.Load()
	if r == nil || req.Term < r.CurrentTerm() {
		return
	}
	boot := n.clock.Boot()
	n.arrivals.heard.Store(boot)
	if !n.awake.paused(boot, int64(n.cfg.Heartbeat)) && n.logs.term.covers(req.Term, req.LeaderCommitIndex) {
		sent := n.peers.raft.ages.sentAfter(string(req.RPCHeader.ID), boot)
		n.arrivals.push(arrival{sent, req.LeaderCommitIndex}, n.hasApplied)
	}
}

// AppendEntries implements raft.Transport. After each request that fails raft waits
// longer before it replicates to that follower again, up to 10 s, though its heartbeats
// are answered long since: a node that comes back would be no help to the majority for
// as long. So raft is told of the failure when there is contact again, or when the
// member has another address, which raft has only for its next request.
func (t *transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := t.appendEntries(id, target, req, resp)
	if err != nil && replicates(req) {
		t.awaitContact(id, target, req.Term)
	}
	return err
}

// awaitContact waits until a follower answers heartbeats, or this node does not
// replicate to it any more.
func (t *transport) awaitContact(id raft.ServerID, target raft.ServerAddress, term uint64) {
	n := t.node
	look := time.NewTicker(n.cfg.Heartbeat / 10)
	defer look.Stop()
	for n.replicatesTo(id, target, term) && !n.inContact(id, term) {
		select {
		case <-look.C:
		case <-t.done:
			return
		}
	}
}

// inContact says that a follower has just answered.
func (n *Node) inContact(id raft.ServerID, term uint64) bool {
	ack, ok := n.acks.peer(id, term)
	return ok && n.clock.Boot()-ack.heard < int64(n.cfg.Heartbeat/2)
}

// replicates tells a request that replicates from a heartbeat, which has nothing in it.
func replicates(req *raft.AppendEntriesRequest) bool {
	return req.PrevLogEntry > 0 || req.LeaderCommitIndex > 0 || len(req.Entries) > 0
}

// replicatesTo says whether this node leads in term and has that member at target.
func (n *Node) replicatesTo(id raft.ServerID, target raft.ServerAddress, term uint64) bool {
	r := n.raft.Load()
	if r == nil || r.State() != raft.Leader || r.CurrentTerm() != term {
		return false
	}
	for _, s := range n.configuration().Servers {
		if s.ID == id {
			return s.Address == target
		}
	}
	return false
}

// appendEntries sends a request once.
func (t *transport) appendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	n := t.node
	if err := t.severed(id); err != nil {
		return err
	}
	sent := n.clock.Boot()
	if n.stuck(sent) {
		return errStalled
	}
	n.acks.begin(req.Term, n.configuration())
	if err := t.NetworkTransport.AppendEntries(id, target, req, resp); err != nil {
		return err
	}
	if err := t.severed(id); err != nil {
		return err
	}
	if resp.Success && resp.Term == req.Term {
		ack := peerAck{sent: sent, heard: n.clock.Boot(), match: req.PrevLogEntry + uint64(len(req.Entries))}
		n.acks.note(id, req.Term, ack, n.configuration())
	}
	return nil
}

// AppendEntriesPipeline implements raft.Transport: one request at a time.
func (t *transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, target raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if err := t.severed(id); err != nil {
		return err
	}
	return t.NetworkTransport.RequestVote(id, target, req, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if err := t.severed(id); err != nil {
		return err
	}
	return t.NetworkTransport.RequestPreVote(id, target, req, resp)
}

// severed is the error of a link that a test has cut.
func (t *transport) severed(id raft.ServerID) error {
	if f := t.cut.Load(); f != nil {
		return (*f)(id)
	}
	return nil
}

// campaign makes this node stand for election at once, as a leader that hands
// over would.
func (t *transport) campaign() {
	t.deliver(raft.RPC{
		Command:  &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}},
		RespChan: make(chan raft.RPCResponse, 1),
	})
}
