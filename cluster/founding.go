package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// A node that lists nobody but itself founds a cluster when its directory is empty.
// The same command line runs again when the disk of a node was lost whose cluster has
// grown since, and a second cluster at the address of the first would admit what the
// first one has admitted already. The members that are left call at the address of
// the lost one all the time; so a node listens for a moment before it founds.

// foundingWait is how long it listens: members ask for each other's status every
// checkEvery, and a link that failed is dialled again after maxRedial at the latest.
const foundingWait = checkEvery + 2*maxRedial

// hasCluster says that the dialer belongs to a cluster, or looks for a member of one.
func (h hello) hasCluster() bool { return h.of.cluster != [16]byte{} || h.expect != "" }

// noteHello takes down that a node with a cluster called.
func (n *Node) noteHello(h hello) {
	if h.hasCluster() {
		n.caller.CompareAndSwap(nil, &h)
	}
}

// FoundingWait is what Start of this node takes longer, once in its life, because it
// is about to found a cluster of one; 0: it founds none. Ask before Start.
func (n *Node) FoundingWait() time.Duration {
	if len(n.cfg.Members) > 1 || n.cfg.Join != nil || n.joining.wants() != joinsNot || !n.empty() {
		return 0
	}
	return n.cfg.FoundingWait
}

// foundAlone founds a cluster of this node, unless it hears meanwhile that there is
// one that it may have been a member of, or is invited to one.
func (n *Node) foundAlone() error {
	listens, cancel := n.awake.timeout(n.cfg.FoundingWait) // what arrived during a pause is read first
	defer cancel()
	select {
	case <-listens.Done():
	case <-n.stopping:
		return errStopped
	}
	if !n.joining.found() { // it was invited
		n.background.Go(n.awaitCluster)
		return nil
	}
	if h := n.caller.Load(); h != nil {
		n.fatal(n.cfg.noSecondCluster(*h))
		return nil
	}
	return n.startRaft(&raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: n.serverID(), Address: raft.ServerAddress(n.cfg.self().Peer),
	}}})
}

// noSecondCluster is why a node does not found a cluster that was called by a node
// that has one, and what to do.
func (c Config) noSecondCluster(h hello) error {
	why := "a cluster is there already"
	if h.expect != "" {
		why = "and looks for " + h.expect + " here"
	}
	return errors.New(fmt.Sprintf("%s calls at peer address %s, %s: the data directory %s is empty, and this node founds no second cluster. ", h.raftID, c.self().Peer, why, c.DataDir) +
		fmt.Sprintf("If its disk was lost: `limitd cluster remove %s --addr MEMBER`, and start this node with `--join MEMBER`, where MEMBER is the address for clients of %s or of another member. ", c.ID, nodeID(h.raftID)) +
		"To found a cluster of its own, give it another peer address")
}
