package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// askAgain is how long a node rests between two requests to be taken in.
const askAgain = time.Second

// contactTime is for how long a node that was taken in waits for the leader's first
// entries before it makes sure that it still is a member.
const contactTime = 10 * time.Second

// enterCluster brings a node with an empty log into its cluster: into one that
// exists if it is to join, else into one that is founded with the listed nodes.
func (n *Node) enterCluster() error {
	alone := len(n.cfg.Members) == 1
	switch {
	case n.cfg.Join != nil:
		if err := n.joining.set(intentOf(n.cfg.NonVoter)); err != nil {
			return err
		}
		n.background.Go(n.join)
		return nil
	case alone && n.joining.wants() != joinsNot:
		return fmt.Errorf("this node waits to be taken into a cluster (%s): start it with --join and the address for clients of any member, or remove the file to found a cluster of one", n.joining.path)
	case alone:
		return n.foundAlone()
	}
	n.background.Go(n.awaitCluster)
	return nil
}

func (n *Node) bootstrap() *bootstrap {
	return &bootstrap{
		Self: n.cfg.self(), RaftID: n.raftID, Members: n.cfg.Members, Logger: n.log,
		Ask:     n.peers.askStatus,
		Joining: n.joining.state,
		Told:    func(s *peerStatus) { n.configs.noteTold(s) },
		Run:     func() error { return n.startRaft(nil) },
		Create:  func(c raft.Configuration) error { return n.startRaft(&c) },
		Found:   n.joining.found,
	}
}

// awaitCluster waits until the listed nodes have a cluster with this node in it, or
// can found one.
func (n *Node) awaitCluster() {
	if err := n.bootstrap().wait(n.stopping); err != nil && !errors.Is(err, errStopped) {
		n.fatal(err)
	}
}

// join asks to be taken in until this node is a member, and then until it has
// heard from a leader: it may have been removed before the leader reached it.
func (n *Node) join() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-n.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	for b := n.bootstrap(); n.empty(); {
		rest := askAgain
		var err error
		if !b.isMember() {
			err = n.cfg.Join(ctx, n.raftID, n.cfg.NonVoter)
		}
		switch {
		case n.isStopping():
			return
		case errors.Is(err, ErrJoinRefused) && n.raft.Load() != nil: // it was a member already
			n.noteRemoved(err.Error(), "")
			return
		case errors.Is(err, ErrJoinRefused):
			n.fatal(err)
			return
		case err == nil:
			if n.raft.Load() == nil {
				n.log.Info("this node is a member; raft starts", "raft_id", n.raftID)
				if err := n.startRaft(nil); err != nil {
					if !errors.Is(err, errStopped) {
						n.fatal(err)
					}
					return
				}
			}
			rest = contactTime
		}
		select {
		case <-n.stopping:
			return
		case <-time.After(rest):
		}
	}
}
