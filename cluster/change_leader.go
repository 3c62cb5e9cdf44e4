package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// The leader makes the changes, one at a time, each on the configuration that is
// committed (prevIndex): so what is checked before is true when the change is made.

// makeChange makes a change on the leader. A node that does not lead, or not yet,
// returns an error that passes.
func (n *Node) makeChange(ctx context.Context, c Change) error {
	if c.Op == ChangeTransfer {
		return n.handOver(c.ID)
	}
	select {
	case n.changing <- struct{}{}:
		defer func() { <-n.changing }()
	case <-ctx.Done():
		return passing("another change of the membership is under way")
	case <-n.stopping:
		return passing("the node is stopping")
	}
	base, err := n.settledConfiguration(ctx)
	if err != nil {
		return err
	}
	if c.Op == ChangeJoin {
		return n.takeIn(ctx, base, c)
	}
	s, ok := findServer(base.servers, c.ID)
	if !ok {
		return n.notMember(base, c)
	}
	switch c.Op {
	case ChangePromote:
		return n.promote(ctx, base, s, c)
	case ChangeDemote, ChangeRemove:
		return n.takeOut(ctx, base, s, c)
	}
	return fmt.Errorf("unknown change %.40q of the membership: the nodes have different versions", string(c.Op))
}

// notMember is the answer to a change of somebody who is no member. Who was one, or
// may be one, is removed already.
func (n *Node) notMember(base indexedConfiguration, c Change) error {
	if s, ok := findServer(base.servers, nodeID(c.ID)); ok {
		return fmt.Errorf("%s is no member of the cluster; the member %s is %s", c.ID, nodeID(c.ID), s.ID)
	}
	if _, listed := n.cfg.member(c.ID); c.Op == ChangeRemove && (listed || n.configs.hasSeen(c.ID)) {
		return nil
	}
	return fmt.Errorf("%s is no member of the cluster: `limitd cluster nodes` lists them", c.ID)
}

// settledConfiguration waits until this node may decide as leader and its newest
// configuration is committed.
func (n *Node) settledConfiguration(ctx context.Context) (indexedConfiguration, error) {
	for {
		if leader, _ := n.leader(); leader != n.serverID() {
			return indexedConfiguration{}, passing("the leader changed meanwhile")
		}
		if c, committed := n.newestConfiguration(); committed && n.Leading() {
			return c, nil
		}
		news := n.configs.news.next()
		select {
		case <-news:
		case <-time.After(n.cfg.Heartbeat / 10):
		case <-ctx.Done():
			return indexedConfiguration{}, passing("the leader cannot commit anything now: a majority of the voters does not answer")
		case <-n.stopping:
			return indexedConfiguration{}, passing("the node is stopping")
		}
	}
}

// promote gives a non-voter its vote, if it is caught up.
func (n *Node) promote(ctx context.Context, base indexedConfiguration, s raft.Server, c Change) error {
	if s.Suffrage == raft.Voter {
		return nil
	}
	status, err := n.caughtUp(s)
	if err != nil {
		return err
	}
	if c.wanted && !status.wantsVoteAt(base.index) {
		return passing(name(s) + " does not want a vote, or does not know yet whether it has one")
	}
	if !c.Force {
		if err := n.checkQuorum(ctx, fmt.Sprintf("with a vote for %s there are", name(s)), append(voters(base.servers), s)); err != nil {
			return err
		}
	}
	return n.submit(ctx, func(r *raft.Raft) raft.Future {
		return r.AddVoter(s.ID, s.Address, base.index, n.cfg.Heartbeat)
	})
}

// takeOut demotes or removes a member. A leader cannot do that to itself: it hands
// over, and whoever asked asks the next one.
func (n *Node) takeOut(ctx context.Context, base indexedConfiguration, s raft.Server, c Change) error {
	removes := c.Op == ChangeRemove
	if s.Suffrage != raft.Voter && !removes {
		return nil
	}
	if s.Suffrage == raft.Voter {
		rest := slices.DeleteFunc(voters(base.servers), func(v raft.Server) bool { return v.ID == s.ID })
		doing := "demoting"
		if removes {
			doing = "removing"
		}
		if len(rest) == 0 {
			return fmt.Errorf("%s is the only voter, and without one there is no cluster: promote another member first", name(s))
		}
		if !c.Force {
			if err := n.checkQuorum(ctx, fmt.Sprintf("after %s %s there are", doing, name(s)), rest); err != nil {
				return err
			}
		}
	}
	if s.ID == n.serverID() {
		if err := n.handOver(""); err != nil {
			return passing(fmt.Sprintf("%s leads and cannot hand over: %v", name(s), err))
		}
		return passing(name(s) + " has handed the leadership over, and the next leader makes the change")
	}
	return n.submit(ctx, func(r *raft.Raft) raft.Future {
		if removes {
			return r.RemoveServer(s.ID, base.index, n.cfg.Heartbeat)
		}
		return r.DemoteVoter(s.ID, base.index, n.cfg.Heartbeat)
	})
}

// submit gives raft a change and waits until it is committed, or says what is known of it.
func (n *Node) submit(ctx context.Context, change func(*raft.Raft) raft.Future) error {
	err := n.await(ctx, change(n.raft.Load()))
	n.noteRefusal(err)
	switch {
	case err == nil:
		return nil
	case outcomeOf(err) == fsm.Refused:
		return passing("the leader changed meanwhile, or hands over")
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown), errors.Is(err, errClosed),
		ctx.Err() != nil, n.disk.failed() != nil:
		return &verdictError{changeInDoubt, fmt.Errorf("the change was not committed in time: %w", err)}
	}
	return passing("raft has refused the change: " + err.Error()) // the configuration is another one by now
}

// name is the node id of a member.
func name(s raft.Server) string { return nodeID(string(s.ID)) }
