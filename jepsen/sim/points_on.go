//go:build failpoint

package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/pprof"
	"strings"
	"sync"
	"unsafe"

	"limitd/snapshot"
)

// crashPoints are the places of the snapshot file at which a process may die: while it
// makes the file, writes a snapshot, small or large, installs the leader's.
var crashPoints = strings.Fields(`create.built create.synced create.renamed create.dirsynced
	commit.begin commit.put commit.done commit.begin commit.put commit.done
	rebuild.added rebuild.begin rebuild.batch rebuild.built rebuild.synced rebuild.renamed rebuild.dirsynced rebuild.swapped rebuild.done
	install.begin install.batch install.built install.synced install.renamed install.dirsynced install.swapped install.hooked`)

func init() {
	snapshot.OnFailpoint = func(name string) {
		if p := current(); p != nil {
			p.reached(name)
		}
	}
	faults = append(faults, fault{"die at a crash point", 8, func(w *world, rng *rand.Rand) func() {
		point := crashPoints[rng.IntN(len(crashPoints))]
		if p := w.victim(rng).up(); p != nil {
			p.disk.set(func() { p.disk.point = point })
		}
		return nil
	}})
}

// reached kills the process if this is where it is to die.
func (p *process) reached(name string) {
	p.m.w.count("reached "+name, 1)
	here := false
	p.disk.set(func() {
		if here = p.disk.point == name; here {
			p.disk.point = ""
		}
	})
	if here {
		p.m.w.count("died at "+name, 1)
		p.crash("at " + name)
	}
}

// processes by the label that all goroutines of a process inherit.
var processes sync.Map // unsafe.Pointer -> *process

// asProcess runs f, whose goroutines are the process's.
func asProcess(p *process, f func()) {
	pprof.Do(context.Background(), pprof.Labels("process", fmt.Sprintf("%p", p)), func(context.Context) {
		processes.Store(label(), p)
		f()
	})
}

// current is whose goroutine this is.
func current() *process {
	p, _ := processes.Load(label())
	found, _ := p.(*process)
	return found
}

// label is the set of profiler labels of this goroutine. There is no other way to ask a
// goroutine whose it is; the runtime keeps this one for those that use it so.
//
//go:linkname label runtime/pprof.runtime_getProfLabel
func label() unsafe.Pointer
