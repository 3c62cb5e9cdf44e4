package nemesis

import (
	"context"
	"time"

	"limitd/jepsen/lab"
)

var kills = []Nemesis{
	{"kill-leader", "an entry that only the leader had, and that comes back with it", Nodes, nil, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, []string{e.leader()}, "", lab.Node.Kill)
	}},
	{"kill-after-ack", "an acknowledgement of which only one node knows", Nodes, nil, func(ctx context.Context, e *Env) error {
		id := e.leader()
		return e.kill(ctx, []string{id}, "the moment it has answered", func(n lab.Node) error {
			e.Ask.AskFor(time.Second, id, "CL.THROTTLE", "limitd:nemesis", "1000000", "1", "1", "1") // an error kills as well
			return n.Kill()
		})
	}},
	{"kill-one", "a node that takes up its log where it ended", Nodes, nil, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.some(1), "", lab.Node.Kill)
	}},
	{"kill-minority", "a majority that counts on those who are gone", Nodes, nil, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.some(e.minority()), "", lab.Node.Kill)
	}},
	{"kill-majority", "an election among those who missed the end", Nodes, nil, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.some(e.majority()), "", lab.Node.Kill)
	}},
	{"kill-all", "a state that was in memory alone", Nodes, nil, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.everybody(), "", lab.Node.Kill)
	}},
}

var powerCuts = []Nemesis{
	{"power-one", "a node that has forgotten what it acknowledged, and votes", Nodes, []lab.Ability{lab.PowerCut}, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, []string{e.victim()}, "power cut", lab.Node.PowerCut)
	}},
	{"power-majority", "an acknowledgement before the disk had it", Nodes, []lab.Ability{lab.PowerCut}, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.some(e.majority()), "power cut", lab.Node.PowerCut)
	}},
	{"power-all", "an acknowledgement that no disk had", Nodes, []lab.Ability{lab.PowerCut}, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.everybody(), "power cut", lab.Node.PowerCut)
	}},
}

// kill ends processes all at once, leaves them down for up to 5 s, and starts them in
// the order in which they were drawn.
func (e *Env) kill(ctx context.Context, ids []string, detail string, how func(lab.Node) error) error {
	return e.during(ids, detail, func() error {
		if err := e.each(ids, how); err != nil {
			return err
		}
		e.wait(ctx, 0, 5*time.Second)
		for _, id := range ids {
			if err := e.start(id); err != nil {
				return err
			}
			e.wait(ctx, 0, 500*time.Millisecond)
		}
		return nil
	})
}
