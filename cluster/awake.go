package cluster

import (
	"context"
	"sync/atomic"
	"time"
)

// awake is for how long this process has run, by its own steps. A stretch in
// which nothing ran here, because the machine slept or the process was stopped,
// is one step of half a heartbeat timeout, however long it was on the boot clock.
// What a watchdog gives so much time is given it in this time: when a process goes
// on after a pause, nothing has had a chance to happen yet.
//
// It also tells of the pause itself: what arrived meanwhile lay in the kernel for
// an unknown time.
type awake struct {
	clock Clock
	every time.Duration // between two steps
	pause int64         // ns: a longer time without a step is a pause, and counts as so much

	ran     atomic.Int64 // ns
	stepped atomic.Int64 // boot clock of the newest step
	resumed atomic.Int64 // boot clock of the end of the newest pause
}

const stepEvery = 100 * time.Millisecond

func newAwake(c Clock, heartbeat time.Duration) *awake {
	a := &awake{clock: c, every: min(stepEvery, heartbeat/10), pause: int64(heartbeat / 2)}
	a.stepped.Store(c.Boot())
	a.resumed.Store(never)
	return a
}

// run steps until stop.
func (a *awake) run(stop <-chan struct{}) {
	t := time.NewTicker(a.every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			a.step()
		}
	}
}

// step is one step; one goroutine takes them.
func (a *awake) step() {
	now := a.clock.Boot()
	since := now - a.stepped.Load()
	if since > a.pause {
		a.resumed.Store(now)
	}
	a.ran.Add(min(since, a.pause))
	a.stepped.Store(now) // last: who finds a new step finds the pause before it
}

// paused says whether a pause of this process ended less than so much (ns) before
// boot, or has ended and no step has noticed yet.
func (a *awake) paused(boot, within int64) bool {
	return boot-a.stepped.Load() > a.pause || a.resumed.Load() > boot-within
}

// timeout is a context that ends when this process has run for so long.
func (a *awake) timeout(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	end := a.ran.Load() + int64(d)
	go func() {
		t := time.NewTicker(a.every)
		defer t.Stop()
		for a.ran.Load() < end {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// lasting tells for how long a thing has been what it is, in time in which this
// process ran.
type lasting[T comparable] struct {
	is    T
	since int64
}

// look takes down what the thing is now, and how long this process has run.
func (l *lasting[T]) look(is T, ran int64) time.Duration {
	if is != l.is {
		l.is, l.since = is, ran
	}
	return time.Duration(ran - l.since)
}
