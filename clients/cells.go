package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"limitd/proc/nodes"
)

// cell is what one client is asked to do.
type cell string

const (
	connects  cell = "connects"
	calls     cell = "limit calls"
	pipeline  cell = "pipeline"
	lostReply cell = "lost reply"
	restart   cell = "restart of its node"
	transfer  cell = "leader transfer"
	kill      cell = "leader kill"
)

// row is what came of one client.
type row struct {
	client  *client
	version string
	resp    string
	resends bool // it repeats a call by itself whose reply it did not get

	mu       sync.Mutex
	failed   map[cell]error
	seconds  []float64      // of errors after each kill of the leader
	surprise map[string]int // errors it saw in the fault cells, by text
}

// fail notes the first failure of a cell.
func (r *row) fail(at cell, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.failed[at] == nil {
		r.failed[at] = err
	}
}

// matrix is the run: all clients and their cells.
type matrix struct {
	options
	dir      string
	rows     []*row
	note     func(string)
	clusters int
}

func newMatrix(o options, dir string, chosen []*client, note func(string)) *matrix {
	m := &matrix{options: o, dir: dir, note: note}
	for _, c := range chosen {
		m.rows = append(m.rows, &row{client: c, failed: map[cell]error{}, surprise: map[string]int{}})
	}
	return m
}

func (m *matrix) run(ctx context.Context) error {
	err := m.on(ctx, patient, func(c cluster) error {
		at := c.Nodes[0]
		m.note("connecting without a password")
		m.each(ctx, connects, func(r *row) error { return m.connect(ctx, r, at, login{}) })
		m.note("limit calls")
		m.each(ctx, calls, func(r *row) error { return m.call(ctx, r, at) })
		m.note("pipelines")
		m.each(ctx, pipeline, func(r *row) error { return m.pipe(ctx, r, at) })
		m.note("lost replies")
		m.each(ctx, lostReply, func(r *row) error { return m.lose(ctx, r, at) })
		return nil
	})
	if err != nil {
		return err
	}
	err = m.on(ctx, passwords+patient, func(c cluster) error {
		m.note("connecting with a password")
		m.each(ctx, connects, func(r *row) error { return m.authenticate(ctx, r, c.Nodes[0]) })
		return nil
	})
	if err != nil {
		return err
	}
	return m.on(ctx, passwords, func(c cluster) error {
		m.note("restart")
		if err := m.restart(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", restart, err)
		}
		m.note("leader transfer")
		if err := m.transfer(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", transfer, err)
		}
		m.note("leader kills")
		if err := m.kill(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", kill, err)
		}
		return nil
	})
}

// on runs f on a fresh cluster with these settings.
func (m *matrix) on(ctx context.Context, settings string, f func(cluster) error) (err error) {
	m.clusters++
	config := nodes.Config{Dir: filepath.Join(m.dir, fmt.Sprint("cluster", m.clusters)), Program: m.limitd, Settings: settings}
	if strings.Contains(settings, passwords) {
		config.Password = byPassword.password
	}
	made, err := nodes.New(config)
	if err != nil {
		return err
	}
	c := cluster{made}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.start(ctx); err != nil {
		return err
	}
	return f(c)
}

// together is how many clients do a cell without a fault at once.
const together = 3

// each does a cell for every client.
func (m *matrix) each(ctx context.Context, at cell, do func(*row) error) {
	var wg sync.WaitGroup
	free := make(chan struct{}, together)
	for _, r := range m.rows {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if ctx.Err() == nil {
				r.fail(at, do(r))
			}
		})
	}
	wg.Wait()
	for _, r := range m.rows {
		r.fail(at, ctx.Err())
	}
}

// failures describes each cell that is not green.
func (m *matrix) failures() []string {
	var list []string
	for _, r := range m.rows {
		for _, at := range []cell{connects, calls, pipeline, lostReply, restart, transfer, kill} {
			if err := r.failed[at]; err != nil {
				list = append(list, fmt.Sprintf("%s, %s: %v", r.client.name, at, err))
			}
		}
	}
	return list
}
