package nemesis

import (
	"context"
	"errors"
	"time"

	"limitd/jepsen/lab"
)

var pauses = []Nemesis{
	{"pause", "a leader that wakes up and does not know that it slept", Nodes, nil, func(ctx context.Context, e *Env) error {
		return e.pause(ctx, []string{e.victim()})
	}},
	{"pause-majority", "entries that were sent before a sleep and arrive after it", Nodes, nil, func(ctx context.Context, e *Env) error {
		return e.pause(ctx, e.some(e.majority()))
	}},
	{"pause-often", "a leader that sleeps a little less than it may", Nodes, nil, func(ctx context.Context, e *Env) error {
		id := e.victim()
		n := e.Lab.Node(id)
		return e.during([]string{id}, "SIGSTOP, again and again", func() error {
			for range 10 {
				if err := n.Pause(); err != nil {
					return err
				}
				e.wait(ctx, 100*time.Millisecond, 600*time.Millisecond)
				if err := n.Resume(); err != nil {
					return err
				}
				if !e.wait(ctx, 10*time.Millisecond, 500*time.Millisecond) {
					break
				}
			}
			return nil
		})
	}},
	{"slow-cpu", "one slow node that makes all of them slow", Nodes, []lab.Ability{lab.CPUQuota}, func(ctx context.Context, e *Env) error {
		id := e.victim()
		n := e.Lab.Node(id)
		return e.during([]string{id}, "a tenth of a processor", func() error {
			if err := n.CPU(0.1); err != nil {
				return err
			}
			e.wait(ctx, time.Second, 6*time.Second)
			return n.CPU(0)
		})
	}},
}

// pause stops processes for 0.1 to 10 s.
func (e *Env) pause(ctx context.Context, ids []string) error {
	return e.during(ids, "SIGSTOP", func() error {
		if err := e.each(ids, lab.Node.Pause); err != nil {
			return err
		}
		e.wait(ctx, 100*time.Millisecond, 10*time.Second)
		var failed error
		for _, id := range ids {
			failed = errors.Join(failed, e.Lab.Node(id).Resume())
		}
		return failed
	})
}
