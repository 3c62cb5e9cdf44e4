package cluster

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"limitd/algo"
	"limitd/fsm"
)

// world is a cluster of three machines whose clocks a test moves, and the time that
// truly goes by: this machine's boot clock and what the test adds to it. No node
// can read that.
type world struct {
	*testCluster
	clocks map[*testNode]*worldClock
	passed atomic.Int64
	boots  int
	drains int
	// best is the most by which cluster time has been ahead of the true time, since a
	// case named a difference between them. A delay that was lost may be regained: by
	// a node whose receipt is of a leader that had not lost it.
	best int64
}

// worldClock is the clock of one machine: the true time, and what is added to it.
type worldClock struct {
	w          *world
	boot, wall atomic.Int64
	id         atomic.Pointer[string]
}

func (c *worldClock) Boot() int64    { return c.w.now() + c.boot.Load() }
func (c *worldClock) Wall() int64    { return c.w.now() + c.wall.Load() }
func (c *worldClock) BootID() string { return *c.id.Load() }

func (w *world) now() int64 { return machineClock{}.Boot() + w.passed.Load() }

// worldHeartbeat is long enough for a voter to be heard on a busy machine. Nothing
// waits for it to run out: leaders are made by asking a node to campaign.
var worldHeartbeat = onThisMachine(500 * time.Millisecond)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{clocks: map[*testNode]*worldClock{}}
	w.testCluster = newTestCluster(t, 3, func(cfg *Config) {
		cfg.Heartbeat, cfg.Election, cfg.Lease = worldHeartbeat, worldHeartbeat, worldHeartbeat
	})
	wall := machineClock{}.Wall() - w.now()
	for _, n := range w.nodes {
		c := &worldClock{w: w}
		c.wall.Store(wall)
		w.clocks[n], n.cfg.Clock = c, c
	}
	w.reboot(w.nodes...)
	for _, n := range w.nodes {
		w.start(n)
	}
	w.leader()
	w.best = never
	return w
}

// pass lets time go by, on every machine, whether its node runs or not. In the end
// every node has got a batch of the time after it.
func (w *world) pass(d time.Duration) {
	w.passed.Add(int64(d))
	if slices.ContainsFunc(w.nodes, w.runs) {
		w.settle()
	}
}

func (w *world) runs(n *testNode) bool { return n.Node != nil && !n.isStopping() }

// settle waits until all nodes that run, and are not cut off, have a batch of now.
func (w *world) settle(cut ...*testNode) {
	w.t.Helper()
	want := w.commit(nil)
	for _, n := range w.nodes {
		if w.runs(n) && !slices.Contains(cut, n) {
			eventually(w.t, n.cfg.ID+" to apply a batch", func() bool { return n.FSM().State().Last >= want })
		}
	}
}

// commit has a batch decided on whoever leads, and returns its index. asked is a true
// time before the turn's.
func (w *world) commit(decide func(n *testNode, turn fsm.Turn, asked int64) []fsm.Effect) (index uint64) {
	w.t.Helper()
	patiently(w.t, "a batch to take effect", func() bool {
		for _, n := range w.nodes {
			if !w.runs(n) {
				continue
			}
			asked := w.now()
			turn, err := n.Begin()
			if err != nil {
				continue
			}
			var effects []fsm.Effect
			if decide != nil {
				effects = decide(n, turn, asked)
			}
			i, o := n.Commit(fsm.AppendEntry(nil, turn, effects))
			if index = i; o == fsm.Applied {
				return true
			}
		}
		return false
	})
	return index
}

// lead has a node lead.
func (w *world) lead(n *testNode) {
	w.t.Helper()
	asked := time.Time{}
	patiently(w.t, n.cfg.ID+" to lead", func() bool {
		if !n.Leading() && n.raft.Load() != nil && time.Since(asked) > worldHeartbeat {
			n.trans.campaign()
			asked = time.Now()
		}
		return n.Leading()
	})
}

// halt stops nodes: in order, or as if they were killed, then with what is on disk.
func (w *world) halt(killed bool, nodes ...*testNode) {
	w.t.Helper()
	for _, n := range nodes {
		if err := n.keepReceipt(); err != nil { // as it is done once a second
			w.t.Fatal(err)
		}
		if killed {
			n.kill()
		} else {
			n.Close()
		}
	}
}

func (w *world) restart(nodes ...*testNode) {
	w.t.Helper()
	for _, n := range nodes {
		n.mu.Lock()
		n.died = nil // of what ran before
		n.mu.Unlock()
		w.start(n)
	}
}

// reboot gives the machines of nodes that do not run another boot, in which the boot
// clock begins at 0.
func (w *world) reboot(nodes ...*testNode) {
	for _, n := range nodes {
		w.boots++
		id := fmt.Sprint("boot-", w.boots)
		w.clocks[n].id.Store(&id)
		w.clocks[n].boot.Store(-w.now())
	}
}

// wallsRight sets all wall clocks to what cluster time is at the true time at.
func (w *world) wallsRight(clusterTime, at int64) {
	for _, c := range w.clocks {
		c.wall.Store(clusterTime - at)
	}
}

func (w *world) wallWrong(by time.Duration, nodes ...*testNode) {
	for _, n := range nodes {
		w.clocks[n].wall.Add(int64(by))
	}
}

// bootWrong lets the boot clock of nodes jump, as none should.
func (w *world) bootWrong(by time.Duration, nodes ...*testNode) {
	for _, n := range nodes {
		w.clocks[n].boot.Add(int64(by))
	}
}

// roles are the leader and the two others.
func (w *world) roles() (l, f, g *testNode) {
	l = w.leader()
	rest := w.others(l)
	return l, rest[0], rest[1]
}

// tap is a limit on a key of the same name.
type tap struct {
	name  string
	limit algo.Limit
}

func newTap(t *testing.T, maxBurst, count int64, period time.Duration) tap {
	t.Helper()
	l, err := algo.NewThrottle(maxBurst, count, int64(period/time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return tap{fmt.Sprintf("%d per %s", count, period), l}
}

// drained is what one batch took out of each key, and when.
type drained struct {
	at, from, to int64 // cluster time of the batch; true times before and after it was read
	units        map[string]int64
}

// drain takes unit after unit of every key until it is denied, in one batch. Of a batch
// whose leader was deposed nobody knows at once whether it took effect: it leaves a
// mark, and the first one that did is what the keys were drained by.
func (w *world) drain(taps []tap) drained {
	w.t.Helper()
	var tries []drained
	var last *testNode
	w.drains++
	mark := func(try int) string { return fmt.Sprintf("drain %d, batch %d", w.drains, try) }
	w.commit(func(n *testNode, turn fsm.Turn, asked int64) (effects []fsm.Effect) {
		last = n
		d := drained{turn.At, asked, w.now(), map[string]int64{}}
		effects = append(effects, fsm.Effect{Op: fsm.OpReplace, Key: []byte(mark(len(tries))), Ident: []byte{1}, State: []byte{1}, Expiry: turn.At + int64(time.Hour)})
		tries = append(tries, d)
		table := n.FSM().Table()
		for _, tp := range taps {
			key, ident := []byte(tp.name), tp.limit.Ident()
			state, expiry, _ := table.Get(table.Hash(0, key), 0, key, ident, nil)
			if expiry <= turn.At {
				state = nil
			}
			for {
				v, e := tp.limit.Decide(state, turn.At, 0, 1, nil)
				if !v.Allowed {
					break
				}
				d.units[tp.name]++
				state, expiry = e.State, e.Expiry
			}
			if d.units[tp.name] > 0 {
				effects = append(effects, fsm.Effect{Op: fsm.OpReplace, Key: key, Ident: ident, State: state, Expiry: expiry})
			}
		}
		return effects
	})
	for try, d := range tries {
		if has(last, mark(try)) {
			return d
		}
	}
	w.t.Fatal("the batch that took effect left no mark")
	return drained{}
}
