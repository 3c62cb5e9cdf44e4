package nemesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"limitd/jepsen/lab"
)

var process = []Nemesis{
	{"kill-leader", "an acknowledgement that only one node knows of", "process", nil, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, []string{e.leaderOr()}, lab.Node.Kill)
	}},
	{"kill-one", "", "process", nil, func(ctx context.Context, e *Env) error { return e.kill(ctx, e.some(1), lab.Node.Kill) }},
	{"kill-majority", "an election among those who missed the end", "process", nil, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.some(e.majority()), lab.Node.Kill)
	}},
	{"kill-all", "states that are built from disk alone", "process", nil, func(ctx context.Context, e *Env) error { return e.kill(ctx, e.some(9), lab.Node.Kill) }},
	{"power-one", "writes that were not synced", "process", []lab.Ability{lab.PowerCut}, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, []string{e.victim().ID()}, lab.Node.PowerCut)
	}},
	{"power-majority", "acknowledgements that were in memory only", "process", []lab.Ability{lab.PowerCut}, func(ctx context.Context, e *Env) error {
		return e.kill(ctx, e.some(e.majority()), lab.Node.PowerCut)
	}},
	{"power-all", "", "process", []lab.Ability{lab.PowerCut}, func(ctx context.Context, e *Env) error { return e.kill(ctx, e.some(9), lab.Node.PowerCut) }},
	{"pause", "a leader that wakes up and does not know that it slept", "process", nil, func(ctx context.Context, e *Env) error {
		return e.pause(ctx, []string{e.victim().ID()})
	}},
	{"pause-majority", "", "process", nil, func(ctx context.Context, e *Env) error { return e.pause(ctx, e.some(e.majority())) }},
	{"slow-cpu", "one slow node", "process", []lab.Ability{lab.CPUQuota}, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "a tenth of a processor")
		err := n.CPU(0.1)
		e.wait(ctx, time.Second, 6*time.Second)
		err = errors.Join(err, n.CPU(0))
		e.end([]string{n.ID()}, "")
		return err
	}},
	{"stop", "an orderly stop in the middle of everything", "process", nil, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "SIGTERM")
		code, err := n.Stop(30 * time.Second)
		if err == nil && code != 0 {
			err = fmt.Errorf("%s ended with code %d after SIGTERM", n.ID(), code)
		}
		e.wait(ctx, 0, 2*time.Second)
		err = errors.Join(err, n.Start())
		e.end([]string{n.ID()}, "")
		return err
	}},
	{"rolling-restart", "", "process", nil, func(ctx context.Context, e *Env) error {
		for _, id := range e.Members.List() {
			e.begin([]string{id}, "SIGTERM")
			if _, err := e.Lab.Node(id).Stop(30 * time.Second); err != nil {
				return err
			}
			if err := e.Lab.Node(id).Start(); err != nil {
				return err
			}
			e.end([]string{id}, "")
			if !e.wait(ctx, time.Second, 2*time.Second) {
				break
			}
		}
		return nil
	}},
	{"transfer", "leadership that goes by itself", "admin", nil, func(ctx context.Context, e *Env) error {
		to := e.some(1)
		e.begin(to, "")
		e.ask(10*time.Second, "RL.CLUSTER", "TRANSFER", to[0])
		e.end(to, "")
		return nil
	}},
	{"transfer-storm", "a transfer to a node that lags, cut short by a cut, leaves a leader that refuses for ever", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		leader := e.leaderOr()
		lagging := e.others(leader)[0]
		e.begin([]string{leader, lagging}, "transfers to a node that is cut off")
		if err := e.Lab.Network().Cut(split([]string{lagging}, e.others(lagging), lab.PeerPort)); err != nil {
			return err
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { e.ask(10*time.Second, "RL.CLUSTER", "TRANSFER", lagging) })
		}
		e.wait(ctx, 100*time.Millisecond, time.Second)
		err := e.Lab.Network().Cut(split([]string{leader}, e.others(leader), lab.PeerPort))
		e.wait(ctx, 500*time.Millisecond, 3*time.Second)
		err = errors.Join(err, e.Lab.Network().Cut(nil))
		all.Wait()
		e.end([]string{leader, lagging}, "")
		return err
	}},
}

// kill ends processes all at once, leaves them down for up to 5 s, and starts them in
// random order.
func (e *Env) kill(ctx context.Context, ids []string, how func(lab.Node) error) error {
	e.begin(ids, "")
	var all sync.WaitGroup
	failed := make([]error, len(ids))
	for i, id := range ids {
		all.Go(func() { failed[i] = how(e.Lab.Node(id)) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	e.wait(ctx, 0, 5*time.Second)
	e.Rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		if err := e.Lab.Node(id).Start(); err != nil {
			return err
		}
		e.wait(ctx, 0, 500*time.Millisecond)
	}
	e.end(ids, "")
	return nil
}

func (e *Env) pause(ctx context.Context, ids []string) error {
	e.begin(ids, "SIGSTOP")
	for _, id := range ids {
		if err := e.Lab.Node(id).Pause(); err != nil {
			return err
		}
	}
	e.wait(ctx, 100*time.Millisecond, 10*time.Second)
	var err error
	for _, id := range ids {
		err = errors.Join(err, e.Lab.Node(id).Resume())
	}
	e.end(ids, "")
	return err
}

// ask asks any member; refusals are answers too.
func (e *Env) ask(patience time.Duration, args ...string) (any, error) {
	return e.Ask.AskFor(patience, e.some(1)[0], args...)
}
