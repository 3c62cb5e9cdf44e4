package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/proc/nodes"
)

// The load beside a join: clients that call one by one, with a moment between two
// calls, so that what a call takes is its own time and not that of a queue.
const (
	denialClients = 4 // per node; each asks for used-up keys
	denialPause   = 2 * time.Millisecond
	chargeClients = 1 // per node; each charges
	chargePause   = 10 * time.Millisecond
	fewestDenials = 500 // for a p99
)

// denials is a load of denials and some charges, with the times that the denials took.
type denials struct {
	stop func()

	mu    sync.Mutex
	times []time.Duration
	err   error // the first
}

// startDenials asks all nodes for the keys that seed has used up.
func startDenials(ctx context.Context, nodes []*nodes.Node, keys int) *denials {
	d := &denials{}
	ctx, cancel := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for i, n := range nodes {
		for range denialClients {
			clients.Go(func() {
				every(ctx, denialPause, func() { d.deny(ctx, n.Client, rand.IntN(keys)) })
			})
		}
		for range chargeClients {
			clients.Go(func() {
				every(ctx, chargePause, func() { d.note(ctx, admit(ctx, n.Client, 1+i)) })
			})
		}
	}
	d.stop = func() { cancel(); clients.Wait() }
	return d
}

// every calls f again and again, with a pause.
func every(ctx context.Context, pause time.Duration, f func()) {
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (d *denials) deny(ctx context.Context, client *redis.Client, key int) {
	began := time.Now()
	got, err := client.Do(ctx, "CL.THROTTLE", keyName(key), 0, 1, 86400, 1).Int64Slice()
	took := time.Since(began)
	if err == nil && (len(got) != 5 || got[0] != 1) {
		err = fmt.Errorf("%s: %v: not denied", keyName(key), got)
	}
	d.note(ctx, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, took)
}

func (d *denials) note(ctx context.Context, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil && err != nil && ctx.Err() == nil {
		d.err = err
	}
}

// p99 is that of the denials since it was asked for last.
func (d *denials) p99() (time.Duration, error) {
	d.mu.Lock()
	times, err := d.times, d.err
	d.times = nil
	d.mu.Unlock()
	if err != nil {
		return 0, fmt.Errorf("the load beside the join: %w", err)
	}
	if len(times) < fewestDenials {
		return 0, errors.New("the load beside the join: too few denials for a p99")
	}
	slices.Sort(times)
	return times[len(times)*99/100], nil
}
