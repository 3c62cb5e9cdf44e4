package cluster

import (
	"fmt"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"
)

// A full disk stops a node: what cannot be written cannot be promised. So that not
// all of them fill up together, charges are refused while little is left on the
// leader's disk, or on the disks of so many voters that a majority would be lost. A
// leader whose disk is the only one hands over to a voter that has room. One
// follower that fills up stops alone, and the others go on without it.

// checkDisk looks at the free space of the data directory. Once it was low, an
// eighth more must be free before it counts as enough again.
func (n *Node) checkDisk() {
	var st unix.Statfs_t
	if err := unix.Statfs(n.cfg.DataDir, &st); err != nil {
		n.log.Warn("cannot tell the free disk", "error", fmt.Errorf("statfs %s: %w", n.cfg.DataDir, err))
		return
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	n.diskFree.Store(free)
	floor := n.cfg.MinFreeDisk
	if n.store == StoreWal {
		floor += segmentSize // so that the next one finds room, and the node need not stop
	}
	was := n.diskLow.Load()
	if was {
		floor += floor / 8
	}
	low := free < floor
	n.diskLow.Store(low)
	switch {
	case low && !was:
		n.log.Warn("the disk is nearly full: free space there; if it fills up, this node stops",
			"directory", n.cfg.DataDir, "free", free, "limits.min_free_disk", n.cfg.MinFreeDisk)
	case was && !low:
		n.log.Info("the disk has room again", "directory", n.cfg.DataDir, "free", free)
	}
}

// judgeDisks finds out whether a majority of the voters would be lost with those
// that have little disk left. Voters that do not answer are lost already.
func (n *Node) judgeDisks() {
	boot := n.clock.Boot()
	voters, low, gone := 0, 0, 0
	for _, s := range n.configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == n.serverID() {
			if n.diskLow.Load() {
				low++
			}
			continue
		}
		switch p, ok := n.polledPeer(nodeID(string(s.ID))); {
		case ok && p.status.DiskLow: // also of one that has stopped since
			low++
		case !ok || boot-p.heard > int64(unheard):
			gone++
		}
	}
	lost := low > 0 && voters-low-gone < voters/2+1
	if lost != n.votersLow.Swap(lost) && n.Leading() {
		n.log.Warn("charges are refused while so many voters have a nearly full disk that a majority could be lost",
			"refused", lost, "voters", voters, "low", low, "not heard", gone)
	}
}

// leadElsewhere hands over from a leader whose disk is nearly full to the voter with
// the most room: the cluster need not refuse what the others could keep.
func (n *Node) leadElsewhere() {
	if !n.diskLow.Load() || n.votersLow.Load() || !n.Leading() || n.rest() > 0 {
		return
	}
	to := n.roomiest()
	if to == "" {
		return
	}
	n.background.Go(func() {
		err := n.handOver(to)
		if n.isStopping() {
			return
		}
		if err != nil {
			n.log.Warn("the disk of this leader is nearly full, and another node with room should lead", "to", nodeID(to), "error", err)
			return
		}
		n.log.Warn("the disk of this node is nearly full: another one leads", "to", nodeID(to))
	})
}

// roomiest is the raft id of the other voter that has the most free disk, and enough of
// it; "": none that was heard of lately.
func (n *Node) roomiest() (raftID string) {
	boot, most := n.clock.Boot(), int64(-1)
	for _, s := range n.configuration().Servers {
		if s.Suffrage != raft.Voter || s.ID == n.serverID() {
			continue
		}
		p, ok := n.polledPeer(nodeID(string(s.ID)))
		if ok && boot-p.heard <= int64(unheard) && !p.status.DiskLow && p.status.DiskFree > most {
			raftID, most = string(s.ID), p.status.DiskFree
		}
	}
	return raftID
}

// unheard is for how long a voter that answers is not taken for lost.
const unheard = 5 * checkEvery

// DiskLow says that charges must be refused because the disk is nearly full: this
// node's, or the disks of so many voters that a majority would be lost.
func (n *Node) DiskLow() bool { return n.diskLow.Load() || n.votersLow.Load() }
