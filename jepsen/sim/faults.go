package sim

import (
	"math/rand/v2"
	"time"
)

// faults are all that a nemesis can do. What has no undo ends by itself.
var faults = []fault{
	{"isolate", 6, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		return w.cut(func(from, to *machine) bool { return from == m || to == m })
	}},
	{"split", 3, func(w *world, rng *rand.Rand) func() {
		side := sides(w, rng)
		return w.cut(func(from, to *machine) bool { return side[from] != side[to] })
	}},
	{"one way out", 3, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		return w.cut(func(from, _ *machine) bool { return from == m })
	}},
	{"one way in", 3, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		return w.cut(func(_, to *machine) bool { return to == m })
	}},
	{"pair", 4, func(w *world, rng *rand.Rand) func() {
		a, b := w.victim(rng), w.machines[rng.IntN(len(w.machines))]
		oneWay := rng.IntN(3) == 0
		return w.cut(func(from, to *machine) bool { return from == a && to == b || !oneWay && from == b && to == a })
	}},
	{"flapping", 3, flapping},
	{"slow links", 5, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		delay, jitter := between(rng, time.Millisecond, 400*time.Millisecond), between(rng, 0, 400*time.Millisecond)
		inOnly, outOnly := rng.IntN(4) == 0, rng.IntN(4) == 0
		return w.slow(delay, jitter, func(from, to *machine) bool { return from == m && !inOnly || to == m && !outOnly })
	}},
	{"reset", 3, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		for _, o := range w.machines {
			if rng.IntN(2) == 0 {
				w.net.reset(path{m.member.Peer, o.member.Peer})
			}
		}
		return nil
	}},
	{"pause", 5, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		h := w.net.hosts[m.member.Peer]
		w.net.change(func() { h.frozen = true })
		m.stallDisk()
		return func() {
			w.net.change(func() { h.frozen = false })
			m.fastDisk()
		}
	}},
	{"slow disk", 4, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		m.slowDisk(between(rng, 5*time.Millisecond, 500*time.Millisecond))
		return m.fastDisk
	}},
	{"stalled disk", 3, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		m.stallDisk()
		return m.fastDisk
	}},
	{"kill", 5, func(w *world, rng *rand.Rand) func() { return w.kill(false, w.victim(rng)) }},
	{"kill all", 1, func(w *world, rng *rand.Rand) func() { return w.kill(false, w.machines...) }},
	{"power", 2, func(w *world, rng *rand.Rand) func() { return w.kill(true, w.victim(rng)) }},
	{"power of all", 1, func(w *world, rng *rand.Rand) func() {
		if rng.IntN(4) > 0 {
			return w.kill(true, w.victim(rng))
		}
		return w.kill(true, w.machines...)
	}},
	{"die at a write", 5, func(w *world, rng *rand.Rand) func() {
		if p := w.victim(rng).up(); p != nil {
			p.disk.set(func() { p.disk.kills, p.disk.after = 1+rng.IntN(12), rng.IntN(2) == 0 })
		}
		return nil
	}},
	{"stop", 3, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		if p := m.up(); p != nil {
			m.w.running.Go(func() {
				p.stop()
				m.startIn(10 * time.Second)
			})
		}
		return m.start
	}},
	{"transfer", 5, func(w *world, rng *rand.Rand) func() {
		w.transfer(w.victim(rng), w.machines[rng.IntN(len(w.machines))].member.ID)
		return nil
	}},
	{"transfers", 3, transfers},
	{"lag", 3, lag},
	{"clock", 4, func(w *world, rng *rand.Rand) func() {
		m := w.victim(rng)
		far := []time.Duration{time.Second, time.Hour, 10 * 365 * 24 * time.Hour}[rng.IntN(3)]
		m.wrong.Store(int64(between(rng, -far, far)))
		return nil
	}},
}

// sides draws a side for each machine.
func sides(w *world, rng *rand.Rand) map[*machine]bool {
	side := map[*machine]bool{}
	for _, i := range rng.Perm(len(w.machines))[:len(w.machines)/2] {
		side[w.machines[i]] = true
	}
	return side
}

// flapping cuts a machine off and on, faster and slower than an election.
func flapping(w *world, rng *rand.Rand) func() {
	m := w.victim(rng)
	done := make(chan struct{})
	own := rand.New(rand.NewPCG(rng.Uint64(), 0))
	w.running.Go(func() {
		for {
			undo := w.cut(func(from, to *machine) bool { return from == m || to == m })
			time.Sleep(between(own, 10*time.Millisecond, 2*w.settings.Election))
			undo()
			select {
			case <-done:
				return
			case <-time.After(between(own, 10*time.Millisecond, 2*w.settings.Election)):
			}
		}
	})
	return func() { close(done) }
}

// lag keeps a machine away, cut off or without a process, until the others have thrown
// away the entries that it lacks: when it is back it needs a snapshot.
func lag(w *world, rng *rand.Rand) func() {
	m := w.victim(rng)
	var undo func()
	if rng.IntN(3) == 0 {
		undo = w.kill(false, m)
	} else {
		undo = w.cut(func(from, to *machine) bool { return from == m || to == m })
	}
	w.clients.hurry.Store(true)
	time.Sleep(2*w.settings.Election + w.settings.SnapshotInterval*2 + between(rng, 0, 3*time.Second))
	if rng.IntN(2) == 0 {
		w.clients.hurry.Store(false)
	}
	return func() {
		undo()
		w.clients.hurry.Store(false)
	}
}

// transfers orders one transfer after the other, to a voter that is cut off now and
// then, and cuts the leader off in the middle.
func transfers(w *world, rng *rand.Rand) func() {
	own := rand.New(rand.NewPCG(rng.Uint64(), 0))
	done := make(chan struct{})
	w.running.Go(func() {
		for range 2 + own.IntN(4) {
			from := w.leader()
			if from == nil {
				time.Sleep(between(own, 0, w.settings.Election))
				continue
			}
			to := w.machines[own.IntN(len(w.machines))]
			undo := w.cut(func(a, b *machine) bool { return a == from && b == to })
			time.Sleep(between(own, 0, w.settings.Election))
			w.transfer(from, to.member.ID)
			time.Sleep(between(own, 0, w.settings.Election))
			isolated := w.cut(func(a, b *machine) bool { return a == from || b == from })
			time.Sleep(between(own, 0, 2*w.settings.Election))
			isolated()
			undo()
			select {
			case <-done:
				return
			case <-time.After(between(own, 0, 2*w.settings.Election)):
			}
		}
	})
	return func() { close(done) }
}

// transfer asks a machine's node to have the leadership moved.
func (w *world) transfer(m *machine, to string) {
	p := m.up()
	if p == nil || p.loading.Load() {
		return
	}
	w.running.Go(func() {
		if err := p.node.Transfer(to); err == nil {
			w.count("transfers done", 1)
		}
	})
}

// cut cuts the paths that which names.
func (w *world) cut(which func(from, to *machine) bool) (undo func()) {
	var those []path
	w.paths(which, func(p path) { those = append(those, p) })
	set := func(cut bool) {
		w.net.change(func() {
			for _, p := range those {
				w.net.cut(p, cut)
			}
		})
	}
	set(true)
	return func() { set(false) }
}

// slow makes paths slow.
func (w *world) slow(delay, jitter time.Duration, which func(from, to *machine) bool) (undo func()) {
	was := map[path]link{}
	w.net.change(func() {
		w.paths(which, func(p path) {
			l := w.net.paths[p]
			was[p] = *l
			l.delay, l.jitter = delay, jitter
		})
	})
	return func() {
		w.net.change(func() {
			for p, l := range was {
				w.net.paths[p].delay, w.net.paths[p].jitter = l.delay, l.jitter
			}
		})
	}
}

// paths calls f for the paths between two machines that which names.
func (w *world) paths(which func(from, to *machine) bool, f func(path)) {
	for _, a := range w.machines {
		for _, b := range w.machines {
			if a != b && which(a, b) {
				f(path{a.member.Peer, b.member.Peer})
			}
		}
	}
}

// kill kills the processes of machines, and starts others at the undo.
func (w *world) kill(power bool, those ...*machine) (undo func()) {
	for _, m := range those {
		if power {
			w.outage()
		}
		if p := m.up(); p != nil {
			p.kill(power)
		}
	}
	return func() {
		for _, m := range those {
			m.start()
		}
	}
}
