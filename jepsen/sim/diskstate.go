package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// diskState is how the disk of a machine does at the moment, for one process.
type diskState struct {
	mu    sync.Mutex
	rng   *rand.Rand
	slow  time.Duration // a write takes up to so long
	stall chan struct{} // closed when writes go on; nil: they do
	kills int           // the process is killed at the so manyth write from now on; 0: it is not
	after bool          // and that write is on disk
	point string        // crash point of the snapshot file at which the process is killed; "": none
}

// write is the WriteHook of a process: a write takes its time, before it is on disk
// and after.
func (p *process) write(f func() error) error {
	d := &p.disk
	d.mu.Lock()
	before, after := d.time(), d.time()
	stall := d.stall
	die := false
	if d.kills > 0 {
		d.kills--
		die = d.kills == 0
	}
	d.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-p.died:
		}
	}
	if p.wait(before); die && !d.after {
		p.crash("before a write")
	}
	err := f()
	if die {
		p.crash("after a write")
	}
	p.wait(after)
	return err
}

func (d *diskState) time() time.Duration {
	if d.slow == 0 {
		return time.Duration(d.rng.Int64N(int64(400 * time.Microsecond)))
	}
	return time.Duration(d.rng.Int64N(int64(d.slow)))
}

func (p *process) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.died:
	}
}

// crash kills the process where it is, and has it started again.
func (p *process) crash(where string) {
	if p.dead.Load() {
		return
	}
	p.m.w.log("%s dies %s", p.name, where)
	p.m.w.count("crash points", 1)
	p.kill(false)
	p.m.startIn(time.Duration(1+p.m.w.chance(3000)) * time.Millisecond)
}

func (d *diskState) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// slowDisk has writes take up to d.
func (m *machine) slowDisk(d time.Duration) {
	if p := m.up(); p != nil {
		p.disk.set(func() { p.disk.slow = d })
	}
}

// stallDisk has no write end.
func (m *machine) stallDisk() {
	if p := m.up(); p != nil {
		p.disk.set(func() {
			if p.disk.stall == nil {
				p.disk.stall = make(chan struct{})
			}
		})
	}
}

// fastDisk ends slowDisk and stallDisk.
func (m *machine) fastDisk() {
	if p := m.up(); p != nil {
		p.disk.set(func() {
			p.disk.slow, p.disk.kills, p.disk.point = 0, 0, ""
			if p.disk.stall != nil {
				close(p.disk.stall)
				p.disk.stall = nil
			}
		})
	}
}
