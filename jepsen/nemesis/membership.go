package nemesis

import (
	"context"
	"fmt"
	"time"

	"limitd/jepsen/lab"
)

// A change may take as long as a node has for it; refusals end it sooner.
const changeTime = 12 * time.Second

var membership = []Nemesis{
	{"replace", "a node that lost its disk and comes back as if it had not", "process", nil, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "its disk is replaced")
		defer e.end([]string{n.ID()}, "")
		if err := n.Kill(); err != nil {
			return err
		}
		if err := e.change(ctx, "REMOVE", n.ID()); err != nil {
			return e.keep(n, err)
		}
		e.Members.remove(n.ID())
		if err := n.Wipe(); err != nil {
			return err
		}
		return e.join(ctx, n)
	}},
	{"remove-running", "a removed node, or leader, that does not know", "process", nil, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "removed while it runs, and taken in again")
		defer e.end([]string{n.ID()}, "")
		if err := e.change(ctx, "REMOVE", n.ID()); err != nil {
			return e.keep(n, err)
		}
		e.Members.remove(n.ID())
		deadline := time.Now().Add(20 * time.Second)
		for n.Running() && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
		}
		if n.Running() {
			return fmt.Errorf("%s was removed and runs still, 20 s later", n.ID())
		}
		if err := n.Wipe(); err != nil {
			return err
		}
		return e.join(ctx, n)
	}},
	{"demote", "", "admin", nil, func(ctx context.Context, e *Env) error {
		n := e.follower()
		e.begin([]string{n.ID()}, "no vote for a while")
		defer e.end([]string{n.ID()}, "")
		e.Members.SetVote(n.ID(), false)
		if err := e.change(ctx, "DEMOTE", n.ID()); err != nil {
			return nil // refused, or unknown: promoted below either way
		}
		e.wait(ctx, 500*time.Millisecond, 3*time.Second)
		return nil // made good by the schedule
	}},
	{"remove-partitioned", "a change asked of a leader that leads no more", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		leader := e.leaderOr()
		e.begin([]string{leader}, "a demotion is asked of each node while the leader is cut off")
		if err := e.Lab.Network().Cut(split([]string{leader}, e.others(leader), lab.PeerPort)); err != nil {
			return err
		}
		e.Members.SetVote(e.others(leader)[0], false)
		for _, id := range e.Members.List() {
			e.Ask.AskFor(3*time.Second, id, "RL.CLUSTER", "DEMOTE", e.others(leader)[0])
		}
		err := e.Lab.Network().Cut(nil)
		e.end([]string{leader}, "")
		return err
	}},
}

// change asks for a change of a node until it is made, for changeTime in all.
func (e *Env) change(ctx context.Context, op, id string) error {
	deadline := time.Now().Add(changeTime)
	for {
		other := e.others(id)
		_, err := e.Ask.AskFor(changeTime, other[e.Rand.IntN(len(other))], "RL.CLUSTER", op, id)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		e.wait(ctx, 100*time.Millisecond, 300*time.Millisecond)
	}
}

// keep goes on with a node whose removal was refused: for lack of a majority, say.
// Whether it was made after all is seen when it starts.
func (e *Env) keep(n lab.Node, _ error) error {
	if n.Running() {
		return nil
	}
	return n.Start()
}

// join starts an empty node that asks to be taken in, and waits for its vote.
func (e *Env) join(_ context.Context, n lab.Node) error {
	member := e.Lab.Node(e.others(n.ID())[0])
	if err := n.Start("--join", member.RESP()); err != nil {
		return err
	}
	e.Members.add(n.ID())
	deadline := time.Now().Add(30 * time.Second)
	for {
		f, err := e.Ask.Info(n.ID())
		if err == nil && (f["raft_role"] == "follower" || f["raft_role"] == "leader") && f["ready"] == "1" {
			return nil
		}
		if !n.Running() { // its member was away: as an operator does, with another one
			if err := n.Start("--join", e.Lab.Node(e.some(1)[0]).RESP()); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s has no vote 30 s after it joined: %v, %v", n.ID(), f["raft_role"], err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
