package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"limitd/proc"
)

// node implements Node with a real process.
type node struct {
	id    string
	l     *lab
	disk  *disk      // nil: the data lies in a plain directory
	clock *wallClock // nil: the machine's
	quota *quota     // nil: none
	log   string     // file of what its processes print

	mu     sync.Mutex
	p      *proc.Process
	paused bool // p is
	older  bool // p is the older binary's
	tracer *tracer
	tight  bool // the quota has a bound
}

func (n *node) ID() string   { return n.id }
func (n *node) RESP() string { return n.l.net.address(n.id, RESPPort) }
func (n *node) Peer() string { return n.l.net.address(n.id, PeerPort) }
func (n *node) Data() string { return filepath.Join(n.l.o.Dir, "data", n.id, "limitd") }

func (n *node) Log() io.Reader {
	f, err := os.Open(n.log)
	if err != nil {
		return strings.NewReader(err.Error())
	}
	return f
}

func (n *node) Start(args ...string) error { return n.start(n.l.o.Binary, false, args) }

func (n *node) StartOlder(args ...string) error {
	if err := n.l.unable[Older]; err != nil {
		return err
	}
	return n.start(n.l.o.Older, true, args)
}

func (n *node) Older() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.older
}

func (n *node) start(binary string, older bool, args []string) error {
	if n.Running() {
		return fmt.Errorf("%s runs already", n.id)
	}
	n.let() // what Inject began was for the process before
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.disk != nil {
		if err := n.disk.back(); err != nil {
			return err
		}
	}
	prefix, env := n.l.net.place(n.id)
	for k, v := range n.l.o.Env {
		env = append(env, k+"="+v)
	}
	if n.clock != nil {
		env = append(env, wallEnv+"="+n.clock.file)
	}
	words := slices.Concat(prefix, []string{binary,
		"serve", "--config", filepath.Join(n.l.o.Dir, "config", n.id+".toml"), "--node", n.id,
		"--trace", filepath.Join(n.l.o.Dir, "trace", n.id+".jsonl")}, args)
	p, err := proc.Start(n.id, n.log, env, words[0], words[1:]...)
	if err != nil {
		return err
	}
	n.p, n.older, n.paused = p, older, false
	if n.quota != nil {
		return n.quota.hold(p.PID())
	}
	return nil
}

// process returns the newest process; nil if there is none that runs.
func (n *node) process() *proc.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.p == nil || !n.p.Running() {
		return nil
	}
	return n.p
}

func (n *node) Running() bool { return n.process() != nil }

func (n *node) Exited() (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.p == nil || n.p.Running() {
		return 0, false
	}
	return n.p.ExitCode(), true
}

func (n *node) Kill() error {
	p := n.process()
	if p == nil {
		return nil
	}
	n.let()
	return p.Kill()
}

func (n *node) Stop(patience time.Duration) (int, error) {
	p := n.process()
	if p == nil {
		return 0, fmt.Errorf("%s does not run", n.id)
	}
	if err := errors.Join(n.Resume(), p.StopWithin(patience)); err != nil {
		return 0, err
	}
	return p.ExitCode(), nil
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
	n.paused = on
	return p.Signal(sig)
}

// heal ends every fault of the node but that it does not run.
func (n *node) heal() error {
	n.let()
	var err error
	if n.quota != nil {
		err = n.CPU(0)
	}
	if n.disk != nil {
		err = errors.Join(err, n.disk.heal())
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
	return p != nil && !n.paused && !n.tight, n.tracer == nil && (n.disk == nil || n.disk.well())
}

// close ends the node and gives back what it had.
func (n *node) close() error {
	err := errors.Join(n.heal(), n.Kill())
	if n.disk != nil {
		err = errors.Join(err, n.disk.detach())
	}
	if n.quota != nil {
		err = errors.Join(err, n.quota.close())
	}
	return err
}
