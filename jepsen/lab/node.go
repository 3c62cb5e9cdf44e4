package lab

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// node implements Node with a real process.
type node struct {
	id, host string
	l        *lab
	disk     *disk // nil: the data lies in a plain directory
	clock    *wallClock
	log      *os.File

	mu     sync.Mutex
	p      *process
	tracer *tracer
	hurt   bool // writes are made to fail or wait
	share  func()
}

func (n *node) ID() string   { return n.id }
func (n *node) RESP() string { return fmt.Sprintf("%s:%d", n.host, respPort) }
func (n *node) Peer() string { return fmt.Sprintf("%s:%d", n.host, peerPort) }
func (n *node) Data() string { return filepath.Join(n.l.o.Dir, "data", n.id, "limitd") }

func (n *node) Log() io.Reader {
	f, err := os.Open(n.log.Name())
	if err != nil {
		return strings.NewReader(err.Error())
	}
	return f
}

func (n *node) Start(args ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.p != nil && n.p.running() {
		return fmt.Errorf("%s runs already", n.id)
	}
	if n.disk != nil {
		if err := n.disk.back(); err != nil {
			return err
		}
	}
	env := os.Environ()
	for k, v := range n.l.o.Env {
		env = append(env, k+"="+v)
	}
	if n.clock != nil {
		env = append(env, wallEnv+"="+n.clock.file)
	}
	p, err := launch(n.id, n.log, env, n.l.o.Binary, append([]string{
		"serve", "--config", filepath.Join(n.l.o.Dir, "config", n.id+".toml"), "--node", n.id,
		"--trace", filepath.Join(n.l.o.Dir, "trace", n.id+".jsonl")}, args...)...)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.id, err)
	}
	n.p = p
	return nil
}

// process returns the newest process; nil if there is none that runs.
func (n *node) process() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.p == nil || !n.p.running() {
		return nil
	}
	return n.p
}

func (n *node) Running() bool { return n.process() != nil }

func (n *node) Exited() (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.p == nil || n.p.running() {
		return 0, false
	}
	return n.p.cmd.ProcessState.ExitCode(), true
}

func (n *node) Kill() error {
	p := n.process()
	if p == nil {
		return nil
	}
	n.let()
	return p.kill()
}

func (n *node) Stop(patience time.Duration) (int, error) {
	p := n.process()
	if p == nil {
		return 0, fmt.Errorf("%s does not run", n.id)
	}
	if err := errors.Join(n.Resume(), p.signal(syscall.SIGTERM)); err != nil {
		return 0, err
	}
	if err := p.wait(patience); err != nil {
		return 0, fmt.Errorf("%s after SIGTERM: %w", n.id, errors.Join(err, p.kill()))
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

func (n *node) Pause() error  { return n.pause(true) }
func (n *node) Resume() error { return n.pause(false) }

func (n *node) pause(on bool) error {
	p := n.process()
	if p == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	sig := syscall.SIGCONT
	if on {
		sig = syscall.SIGSTOP
	}
	p.paused = on
	return p.signal(sig)
}

// CPU gives the process a share of the time, by stopping it for the rest of every
// 20 ms.
func (n *node) CPU(share float64) error {
	n.mu.Lock()
	end := n.share
	n.share = nil
	n.mu.Unlock()
	if end != nil {
		end()
	}
	if share <= 0 || share >= 1 {
		return nil
	}
	const period = 20 * time.Millisecond
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			for _, turn := range []struct {
				sig syscall.Signal
				d   time.Duration
			}{{syscall.SIGCONT, time.Duration(share * float64(period))}, {syscall.SIGSTOP, time.Duration((1 - share) * float64(period))}} {
				if p := n.process(); p != nil {
					p.signal(turn.sig)
				}
				select {
				case <-stop:
					if p := n.process(); p != nil {
						p.signal(syscall.SIGCONT)
					}
					return
				case <-time.After(turn.d):
				}
			}
		}
	}()
	n.mu.Lock()
	n.share = sync.OnceFunc(func() { close(stop); <-stopped })
	n.mu.Unlock()
	return nil
}

func (n *node) needsDisk() error {
	if n.disk == nil {
		return fmt.Errorf("%w: the lab was opened without disks", ErrUnable)
	}
	return nil
}

func (n *node) PowerCut() error {
	if err := n.needsDisk(); err != nil {
		return err
	}
	return errors.Join(n.disk.thaw(), n.disk.cut(), n.Kill())
}

func (n *node) Fill(leave int64) error {
	if err := n.needsDisk(); err != nil {
		return err
	}
	return n.disk.fill(leave)
}

func (n *node) Drain() error {
	if err := n.needsDisk(); err != nil {
		return err
	}
	return n.disk.drain()
}

func (n *node) Stall(on bool) error {
	if err := n.needsDisk(); err != nil {
		return err
	}
	if on {
		return n.disk.freeze()
	}
	return n.disk.thaw()
}

func (n *node) Inject(spec string) error {
	n.let()
	p := n.process()
	if spec == "" || p == nil {
		return nil
	}
	if err := n.l.Able(SlowDisk); err != nil {
		return err
	}
	call, _, _ := strings.Cut(spec, ":")
	t, err := attach(p.cmd.Process.Pid, filepath.Join(n.Data(), "raft.db"), call, spec)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.tracer, n.hurt = t, true
	n.mu.Unlock()
	return nil
}

// let ends what Inject began.
func (n *node) let() {
	n.mu.Lock()
	t := n.tracer
	n.tracer, n.hurt = nil, false
	n.mu.Unlock()
	if t != nil {
		t.end()
	}
}

func (n *node) Wipe() error {
	if n.Running() {
		return fmt.Errorf("%s runs: its disk is not wiped", n.id)
	}
	if n.disk != nil {
		if err := n.disk.back(); err != nil {
			return err
		}
	}
	return os.RemoveAll(n.Data())
}

// Damage changes a file of the data directory as d says. A file that is not there
// is an error.
func (n *node) Damage(d Damage) error {
	if n.Running() {
		return fmt.Errorf("%s runs: its files are not damaged", n.id)
	}
	if n.disk != nil {
		if err := n.disk.back(); err != nil {
			return err
		}
	}
	file := filepath.Join(n.Data(), d.File)
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(d.Seed, 1))
	switch d.How {
	case "flip":
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	case "truncate":
		b = b[:r.IntN(len(b))]
	case "zero":
		page := r.IntN((len(b) + 4095) / 4096)
		clear(b[page*4096 : min(len(b), page*4096+4096)])
	case "remove":
		return os.Remove(file)
	default:
		return fmt.Errorf("damage %q: want flip, truncate, zero or remove", d.How)
	}
	return os.WriteFile(file, b, 0o600)
}

func (n *node) JumpWall(d time.Duration) error {
	if n.clock == nil {
		return n.l.Able(WallTime)
	}
	return n.clock.jump(d)
}

func (n *node) DriftWall(rate float64) error {
	if n.clock == nil {
		return n.l.Able(WallTime)
	}
	n.clock.drift(rate)
	return nil
}

// heal ends every fault of the node but that it does not run.
func (n *node) heal() error {
	n.let()
	err := n.CPU(0)
	if n.disk != nil {
		err = errors.Join(err, n.disk.thaw(), n.disk.drain())
	}
	if n.clock != nil {
		n.clock.drift(1)
	}
	return errors.Join(err, n.Resume())
}

// up says that the process runs unhindered, and whether its disk does.
func (n *node) up() (process, disk bool) {
	p := n.process()
	n.mu.Lock()
	defer n.mu.Unlock()
	return p != nil && !p.paused && n.share == nil, !n.hurt && (n.disk == nil || n.disk.well())
}
