package nemesis

import (
	"context"
	"sync"
	"time"

	"limitd/jepsen/lab"
)

const (
	changeTime = 12 * time.Second // that a change may take, asked again and again
	joinTime   = 25 * time.Second // that a new node may take until it has its vote
)

// Refused changes, and changes of which nobody knows whether they were made, are for
// the operator: he asks the cluster who is a member, and goes on from there.
var memberships = []Nemesis{
	{"join", "a vote that counts before the node has what it votes on", Members, nil, func(ctx context.Context, e *Env) error {
		if id := e.spare(); id != "" {
			return e.join(ctx, id)
		}
		return e.removal(ctx, e.follower, "REMOVE")
	}},
	{"remove-follower", "a majority that still counts on who is gone", Members, nil, func(ctx context.Context, e *Env) error {
		return e.removal(ctx, e.follower, "REMOVE")
	}},
	{"remove-leader", "a leader that is no member and goes on", Members, nil, func(ctx context.Context, e *Env) error {
		return e.removal(ctx, e.leader, "REMOVE")
	}},
	{"leave", "a node that is gone before others know", Members, nil, func(ctx context.Context, e *Env) error {
		return e.removal(ctx, e.victim, "LEAVE")
	}},
	{"remove-partitioned", "a change that two leaders make", Members | Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		if roomy, err := e.grow(ctx); !roomy {
			return err
		}
		id := e.victim()
		return e.during([]string{id}, "it is cut off; it and the others are asked to remove each other", func() error {
			if err := e.Lab.Network().Cut(split([]string{id}, e.others(id), lab.PeerPort)); err != nil {
				return err
			}
			e.wait(ctx, 0, 2*time.Second) // at times before anybody has noticed
			e.Roster.set(id, false)
			var asked sync.WaitGroup
			for _, by := range e.Roster.List() {
				goes := id
				if by == id {
					goes = e.others(id)[0]
					e.Roster.set(goes, false) // the others may do it when the cut is over
				}
				asked.Go(func() { e.Ask.AskFor(changeTime, by, "RL.CLUSTER", "REMOVE", goes) })
			}
			sleep(ctx, 4*time.Second)
			err := e.Lab.Network().Cut(nil)
			asked.Wait() // what is on its way must not be done after all is well
			return err
		})
	}},
	{"join-partitioned", "a new node that is taken in by a leader that is none", Members | Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id, leader := e.spare(), e.leader()
		if id == "" {
			return nil
		}
		return e.during([]string{id, leader}, id+" joins through "+leader+", which is cut off", func() error {
			if err := e.Lab.Network().Cut(split([]string{leader}, e.others(leader), lab.PeerPort)); err != nil {
				return err
			}
			if err := e.Lab.Node(id).Wipe(); err != nil {
				return err
			}
			e.Roster.join(id)
			if err := e.Lab.Node(id).Start(append(e.Serve[:len(e.Serve):len(e.Serve)], "--join", e.Lab.Node(leader).RESP())...); err != nil {
				return err
			}
			e.wait(ctx, time.Second, 5*time.Second)
			return e.Lab.Network().Cut(nil)
		})
	}},
	{"demote", "a leader without a vote, and one that gets it back", Members, nil, func(ctx context.Context, e *Env) error {
		if roomy, err := e.grow(ctx); !roomy {
			return err
		}
		id := e.victim()
		return e.during([]string{id}, "its vote is taken", func() error {
			e.Roster.set(id, false)
			e.change(ctx, e.others(id), "DEMOTE", id)
			e.wait(ctx, 500*time.Millisecond, 3*time.Second)
			return nil // the operator gives it back
		})
	}},
	{"replace", "a node that lost its disk and votes as if it had not", Members | Nodes, nil, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.during([]string{id}, "its disk is replaced by an empty one", func() error {
			if err := e.Lab.Node(id).Kill(); err != nil {
				return err
			}
			e.Roster.set(id, false)
			if !e.change(ctx, e.others(id), "REMOVE", id) {
				return e.start(id) // with what it has
			}
			e.Roster.remove(id)
			if err := e.Lab.Node(id).Wipe(); err != nil {
				return err
			}
			return e.join(ctx, id)
		})
	}},
}

// removal removes a member that runs, if three voters are left then.
func (e *Env) removal(ctx context.Context, who func() string, verb string) error {
	if roomy, err := e.grow(ctx); !roomy {
		return err
	}
	id := who()
	return e.during([]string{id}, verb, func() error {
		e.Roster.set(id, false)
		if verb == "LEAVE" {
			e.change(ctx, []string{id}, verb)
		} else {
			e.change(ctx, e.others(id), verb, id)
		}
		e.wait(ctx, 0, 3*time.Second)
		return nil
	})
}

// change asks one of these nodes for a change, and again until it is made; false if it
// was refused for changeTime, or its outcome is not known.
func (e *Env) change(ctx context.Context, ask []string, change ...string) bool {
	for deadline := time.Now().Add(changeTime); ; {
		_, err := e.Ask.AskFor(changeTime, ask[e.Rand.IntN(len(ask))], append([]string{"RL.CLUSTER"}, change...)...)
		if err == nil {
			return true
		}
		if time.Now().After(deadline) || !e.wait(ctx, 100*time.Millisecond, 300*time.Millisecond) {
			return false
		}
	}
}

// spare is a node that is no member, "" if there is none.
func (e *Env) spare() string {
	for _, n := range e.Lab.Nodes() {
		if !e.Roster.has(n.ID()) && !n.Running() {
			return n.ID()
		}
	}
	return ""
}

// grow takes a spare in if there are but three voters, and says whether there are more.
func (e *Env) grow(ctx context.Context) (bool, error) {
	if id := e.spare(); id != "" && e.Roster.voters() <= 3 {
		if err := e.join(ctx, id); err != nil {
			return false, err
		}
	}
	return e.Roster.voters() > 3, nil
}

// join empties a spare, starts it, and waits for its vote, for joinTime at most.
func (e *Env) join(ctx context.Context, id string) error {
	if err := e.Lab.Node(id).Wipe(); err != nil {
		return err
	}
	return e.during([]string{id}, "it joins", func() error {
		e.Roster.join(id)
		if err := e.start(id); err != nil {
			return err
		}
		for deadline := time.Now().Add(joinTime); time.Now().Before(deadline); {
			if f, err := e.Ask.Info(id); err == nil && f["ready"] == "1" && (f["raft_role"] == "follower" || f["raft_role"] == "leader") {
				e.Roster.list(id, true)
				return nil
			}
			if !sleep(ctx, 100*time.Millisecond) {
				break
			}
		}
		return nil // the operator goes on
	})
}
