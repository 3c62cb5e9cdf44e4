package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"limitd/proc/nodes"
)

const (
	// reserve is what clients leave of a limit for after the fault.
	reserve = 10
	// pace is the pause between two calls of a client while a fault is on.
	pace = 40 * time.Millisecond
	// outage is how long a node stays away when it is restarted.
	outage = time.Second
	// recovery is how long a client may take to be allowed again after a fault is over.
	recovery = 60 * time.Second
)

// restart ends the node that all clients are connected to, and starts it again.
func (m *matrix) restart(ctx context.Context, c cluster) error {
	at := c.Nodes[0]
	if err := c.transfer(ctx, c.Other(at)); err != nil {
		return err
	}
	return m.faulty(at, restart, func(g *gang) error {
		return g.round(ctx, 0, func(*atomic.Int64) error {
			if err := at.Stop(); err != nil {
				return err
			}
			time.Sleep(outage) // the fault itself
			return c.start(ctx)
		}, nil)
	})
}

// transfer moves leadership away from the clients' node, and back to it.
func (m *matrix) transfer(ctx context.Context, c cluster) error {
	at := c.Nodes[0]
	if err := c.transfer(ctx, at); err != nil {
		return err
	}
	return m.faulty(at, transfer, func(g *gang) error {
		return g.round(ctx, 0, func(*atomic.Int64) error {
			if err := c.transfer(ctx, c.Other(at)); err != nil {
				return err
			}
			return c.transfer(ctx, at)
		}, nil)
	})
}

// kill kills the leader again and again, while the clients are connected to a node that survives.
func (m *matrix) kill(ctx context.Context, c cluster) error {
	at := c.Nodes[0]
	return m.faulty(at, kill, func(g *gang) error {
		for n := range m.kills {
			leader := c.Other(at)
			if err := c.transfer(ctx, leader); err != nil {
				return err
			}
			err := g.round(ctx, n, func(killed *atomic.Int64) error {
				killed.Store(time.Now().UnixNano())
				if err := leader.Kill(); err != nil {
					return err
				}
				return c.AwaitAnswers(ctx)
			}, func() error { return c.start(ctx) })
			if err != nil {
				return err
			}
		}
		for _, s := range g.sessions {
			s.row.seconds = s.seconds
		}
		return nil
	})
}

// gang is all clients at work while faults happen at once to all of them.
type gang struct {
	m        *matrix
	at       *nodes.Node
	cell     cell
	sessions []*session
}

// faulty connects all clients to a node for as long as do runs.
func (m *matrix) faulty(at *nodes.Node, what cell, do func(*gang) error) error {
	g := &gang{m: m, at: at, cell: what}
	defer func() {
		for _, s := range g.sessions {
			s.driver.stop()
		}
	}()
	for _, r := range m.rows {
		if r.client.generator {
			continue
		}
		d, err := startDriver(r.client, m.dir, at.Addr, r.client.as())
		if err != nil {
			r.fail(what, err)
			continue
		}
		g.sessions = append(g.sessions, &session{m: m, row: r, driver: d})
	}
	return do(g)
}

// round lets all clients call at a modest pace while break breaks something, until
// each is allowed again; then mends, and has the rest of the 3·limit calls made and judged. break
// may say when its fault began.
func (g *gang) round(ctx context.Context, n int, breaks func(began *atomic.Int64) error, mends func() error) error {
	var began atomic.Int64
	var over, stop atomic.Bool
	var wg sync.WaitGroup
	for _, s := range g.sessions {
		s.begin(keysFor(s.row, g.cell, n))
		wg.Go(func() { s.traffic(&began, &over, &stop) })
	}
	// Nobody may be left to connect when the fault comes.
	err := g.await(ctx, "before the fault", func(s *session) bool { return s.passed.Load() >= 2 })
	if err == nil {
		err = breaks(&began)
	}
	over.Store(true)
	if err == nil {
		err = g.await(ctx, "after the fault", func(s *session) bool { return s.recovered.Load() })
	}
	stop.Store(true)
	wg.Wait()
	if err == nil && mends != nil {
		err = mends()
	}
	if err != nil {
		return err
	}
	for _, s := range g.sessions {
		wg.Go(func() { s.row.fail(g.cell, s.finish(ctx, g.at)) })
	}
	wg.Wait()
	return nil
}

// await waits until all clients that still work are ready; those that take too long have failed.
func (g *gang) await(ctx context.Context, when string, ready func(*session) bool) error {
	deadline := time.Now().Add(recovery)
	for {
		var missing []*session
		for _, s := range g.sessions {
			if s.usable() && !ready(s) {
				missing = append(missing, s)
			}
		}
		switch {
		case len(missing) == 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			for _, s := range missing {
				s.broken(fmt.Errorf("no call was allowed within %s %s", recovery, when))
			}
			return nil
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}
