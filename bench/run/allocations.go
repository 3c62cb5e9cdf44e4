package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"limitd/proc/nodes"
)

const (
	allocationStep  = 200 * time.Millisecond // how often a node is asked what it has allocated
	allocationCalls = 100_000                // so many without a snapshot are a round,
	allocationLoads = 10                     // of at most so many loads
)

// allocationsOf is how many objects the leader allocates for a decision in steady state:
// while the connections are open, and no snapshot is saved. What it allocates by itself
// in such a time (heartbeats) is taken off. What a decision costs with the snapshots is a note.
func allocationsOf(name string, bound float64, r rates) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (*result, error) {
		if err := r.prepare(ctx, e); err != nil {
			return nil, err
		}
		leader, err := e.cluster.Leader(ctx)
		if err != nil {
			return nil, err
		}
		l := benchmark{e.scaled(r.ours), r.keys, append(words("CL.THROTTLE key:__rand_int__"), words(r.args)...)}
		load := func() error { _, err := r.run(ctx, e, l); return err }
		res := &result{name: name, unit: "objects", bound: bound, digits: 4}
		if err := load(); err != nil { // buffers grow to their size
			return nil, err
		}
		idle, _, err := allocationsWhile(ctx, leader, func() error { return pause(ctx, 5*time.Second) })
		if err != nil {
			return nil, err
		}
		if idle.took == 0 {
			return nil, errors.New("the leader saved snapshots all the time")
		}
		own := float64(idle.objects) / idle.took.Seconds()
		for range e.rounds {
			var quiet, all allocations
			for loads := 0; quiet.calls < allocationCalls; loads++ {
				if loads == allocationLoads {
					return nil, fmt.Errorf("%d calls of %d loads were without a snapshot, want %d: make the loads longer (-scale)", quiet.calls, loads, allocationCalls)
				}
				q, a, err := allocationsWhile(ctx, leader, load)
				if err != nil {
					return nil, err
				}
				quiet.add(q)
				all.add(a)
			}
			res.add((float64(quiet.objects) - own*quiet.took.Seconds()) / float64(quiet.calls))
			res.note("of %d calls; %.4f with all, of %d calls; the idle leader allocates %.0f a second",
				quiet.calls, float64(all.objects)/float64(all.calls), all.calls, own)
		}
		return res, nil
	}
}

// allocations are what a node has allocated and decided in a time.
type allocations struct {
	objects, calls int64
	took           time.Duration
}

func (a *allocations) add(b allocations) {
	a.objects += b.objects
	a.calls += b.calls
	a.took += b.took
}

// allocationsWhile samples a node while do runs. quiet is the sum of the steps in which the
// connections did not change and no snapshot was saved, all that of all steps.
func allocationsWhile(ctx context.Context, n *nodes.Node, do func() error) (quiet, all allocations, err error) {
	over := make(chan struct{})
	sampled := make(chan error)
	go func() {
		var err error
		quiet, all, err = sampleUntil(ctx, n, over)
		sampled <- err
	}()
	err = do() // on this thread, whose time slices the load inherits
	close(over)
	err = errors.Join(err, <-sampled)
	return quiet, all, err
}

// sampleUntil is the other half of it.
func sampleUntil(ctx context.Context, n *nodes.Node, over <-chan struct{}) (quiet, all allocations, err error) {
	tick := time.NewTicker(allocationStep)
	defer tick.Stop()
	before, err := sampleAllocations(ctx, n)
	for err == nil {
		var now allocationSample
		select {
		case <-over:
			return quiet, all, nil
		case <-tick.C:
			if now, err = sampleAllocations(ctx, n); err != nil {
				break
			}
			step := allocations{now.objects - before.objects, now.calls - before.calls, now.at.Sub(before.at)}
			all.add(step)
			if now.connections == before.connections && now.saved == before.saved && now.saving+before.saving == 0 {
				quiet.add(step)
			}
			before = now
		}
	}
	return quiet, all, err
}

// allocationSample is what INFO says of a node at a moment.
type allocationSample struct {
	at                                         time.Time
	objects, calls, connections, saving, saved int64
}

func sampleAllocations(ctx context.Context, n *nodes.Node) (s allocationSample, err error) {
	fields, err := n.Info(ctx)
	if err != nil {
		return s, err
	}
	s.at = time.Now()
	var allowed, denied int64
	wanted := map[string]*int64{
		"go_heap_allocs": &s.objects, "allowed": &allowed, "denied": &denied, "total_connections_received": &s.connections,
		"rdb_bgsave_in_progress": &s.saving, "rdb_last_save_time": &s.saved,
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if *wanted[name], err = strconv.ParseInt(fields[name], 10, 64); err != nil {
			return s, fmt.Errorf("%s: INFO says %s:%q", n.ID, name, fields[name])
		}
	}
	s.calls = allowed + denied
	return s, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
