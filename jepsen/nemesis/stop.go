package nemesis

import (
	"context"
	"time"
)

// stopTime is how long a node may take to end after SIGTERM: it hands over and drains.
const stopTime = 30 * time.Second

var stops = []Nemesis{
	{"stop", "an orderly end in the middle of everything", Nodes, nil, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.during([]string{id}, "SIGTERM", func() error {
			if err := e.stop(id); err != nil {
				return err
			}
			e.wait(ctx, 0, 2*time.Second)
			return e.start(id)
		})
	}},
	{"rolling-restart", "a restart of all nodes in turn that is felt", Nodes, nil, func(ctx context.Context, e *Env) error {
		for _, id := range e.Roster.List() {
			err := e.during([]string{id}, "SIGTERM", func() error {
				if err := e.stop(id); err != nil {
					return err
				}
				return e.start(id)
			})
			if err != nil || !e.wait(ctx, time.Second, 2*time.Second) {
				return err
			}
		}
		return nil
	}},
}

// stop ends a node in order. That it ends with code 0 is for the node to do.
func (e *Env) stop(id string) error {
	n := e.Lab.Node(id)
	if !n.Running() {
		return nil
	}
	code, err := n.Stop(stopTime)
	if err == nil && code != 0 {
		e.complain("%s ended with code %d after SIGTERM", id, code)
	}
	return err
}
