package sim

import (
	"math/rand/v2"
	"time"
)

// fault is something that is done to the cluster, and how it is undone.
type fault struct {
	name   string
	weight int
	do     func(w *world, rng *rand.Rand) (undo func())
}

// torment draws faults, one or two at a time, for so long.
func (w *world) torment(length time.Duration) {
	rng := rand.New(rand.NewPCG(w.seed, streamNemesis))
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	draw := func() fault {
		n := rng.IntN(total)
		for _, f := range faults {
			if n -= f.weight; n < 0 {
				return f
			}
		}
		panic("no fault")
	}
	for end := time.Now().Add(length); time.Now().Before(end) && !w.failed(); {
		var undo []func()
		for range 1 + rng.IntN(2) {
			f := draw()
			w.log("fault: %s", f.name)
			w.count("fault "+f.name, 1)
			if u := f.do(w, rng); u != nil {
				undo = append(undo, u)
			}
			time.Sleep(between(rng, 0, time.Second))
		}
		longest := 2 * time.Second
		if rng.IntN(4) == 0 {
			longest = 10 * time.Second
		}
		time.Sleep(between(rng, 100*time.Millisecond, longest))
		for _, i := range rng.Perm(len(undo)) {
			undo[i]()
			time.Sleep(between(rng, 0, 200*time.Millisecond))
		}
		if rng.IntN(3) == 0 {
			time.Sleep(between(rng, 0, 4*time.Second))
		}
	}
}

func between(rng *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(rng.Int64N(int64(hi-lo)+1))
}

// heal ends all faults, and starts what does not run.
func (w *world) heal() {
	w.log("heal")
	w.net.healAll()
	for _, m := range w.machines {
		m.fastDisk()
		m.start()
	}
}

// victim is a machine, the leader's more often than another.
func (w *world) victim(rng *rand.Rand) *machine {
	if m := w.leader(); m != nil && rng.IntN(5) < 3 {
		return m
	}
	return w.machines[rng.IntN(len(w.machines))]
}

// leader is the machine whose node leads and may decide; of two, either.
func (w *world) leader() *machine {
	for _, m := range w.machines {
		if p := m.up(); p != nil && p.leads() {
			return m
		}
	}
	return nil
}
