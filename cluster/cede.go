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
// that is stuck. Raft cannot do it, since its main loop waits; what it would send to
// the successor needs no part of it. Should that get lost, the silence of this node
// makes the others elect, two to four heartbeat timeouts later.
//
// The successor may be elected any moment from then on, so acknowledgements that came
// before prove nothing any more.
func (n *Node) cede(ceded *int64) {
	boot := n.clock.Boot()
	begun := n.disk.writing.Load()
	if !n.stuck(boot) || begun == *ceded || n.awake.paused(boot, int64(n.cfg.Heartbeat)) {
		return
	}
	r := n.raft.Load()
	if r == nil || r.State() != raft.Leader {
		return
	}
	*ceded = begun
	n.leaderNews.announce()
	to, err := n.successor("")
	n.acks.forget(n.configuration())
	if err != nil {
		n.log.Warn("the disk of this leader hangs, and nobody can take over", "error", err)
		return
	}
	n.log.Warn("the disk of this leader hangs: another node shall lead", "to", nodeID(string(to.ID)), "waiting", time.Duration(boot-begun))
	n.background.Go(func() {
		req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(n.serverID()), Addr: []byte(n.cfg.self().Peer)}}
		if err := n.trans.TimeoutNow(to.ID, to.Address, req, &raft.TimeoutNowResponse{}); err != nil {
			n.log.Warn("the leadership was not handed over; the others will elect", "error", err)
		}
	})
}
