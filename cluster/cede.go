package cluster

import (
	"time"

	"github.com/hashicorp/raft"
)

// stuck says that a write of this node has been waiting for the disk for longer
// than a heartbeat timeout. Then it cannot lead, and raft does not notice: its main
// loop waits for that write while its heartbeats go on. So a stuck leader says
// nothing to its followers, and hands over.
func (n *Node) stuck(boot int64) bool { return n.disk.stalled(boot) > n.cfg.Heartbeat }

// cede hands the leadership of a stuck node to another voter, once for each write
// that is stuck, and not while the newest hand-over may still be going on: voters on one
// slow disk would pass it round, a term each time. Should the message get lost, the silence of this node makes the others
// elect, two to four heartbeat timeouts later.
func (n *Node) cede(ceded *int64) {
	boot := n.clock.Boot()
	begun := n.disk.writing.Load()
	if !n.stuck(boot) || begun == *ceded || n.awake.paused(boot, int64(n.cfg.Heartbeat)) || !n.leads() {
		return
	}
	if n.rest() > 0 {
		return
	}
	*ceded = begun
	n.leaderNews.announce()
	to, answer, err := n.pass()
	if err != nil {
		n.log.Warn("the disk of this leader hangs, and nobody can take over", "error", err)
		return
	}
	n.log.Warn("the disk of this leader hangs: another node shall lead", "to", nodeID(string(to.ID)), "waiting", time.Duration(boot-begun))
	n.background.Go(func() {
		if err := <-answer; err != nil {
			n.log.Warn("the leadership was not handed over; the others will elect", "error", err)
		}
	})
}

// passTime is how long a leader that must not go on waits for its successor to have
// the message.
const passTime = 200 * time.Millisecond

// cedeAtTheEnd is the last thing that a leader does that must not go on: it spares
// the others the wait for its heartbeats.
func (n *Node) cedeAtTheEnd() {
	if !n.leads() {
		return
	}
	if _, answer, err := n.pass(); err == nil {
		select {
		case <-answer:
		case <-time.After(passTime):
		}
	}
}

// leads says that raft takes this node for the leader.
func (n *Node) leads() bool {
	r := n.raft.Load()
	return r != nil && r.State() == raft.Leader
}

// pass has another voter stand for election at once, and says which one and where its
// answer comes. Raft has no part in it: its main loop may wait for the disk, or have
// failed. The successor may be elected any moment from now on, for two election
// timeouts, whatever the voters acknowledge meanwhile.
func (n *Node) pass() (to raft.Server, answer <-chan error, err error) {
	to, err = n.successor("")
	if err != nil {
		return to, nil, err
	}
	boot := n.clock.Boot()
	n.acks.discount(boot+2*int64(n.cfg.Election), n.configuration())
	n.transferred.Store(boot)
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(n.serverID()), Addr: []byte(n.cfg.self().Peer),
	}}
	done := make(chan error, 1)
	go func() { done <- n.trans.TimeoutNow(to.ID, to.Address, req, &raft.TimeoutNowResponse{}) }()
	return to, done, nil
}
