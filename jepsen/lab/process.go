package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is one process of a node. What it prints goes to the node's log.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	paused bool // guarded by the node
}

// launch starts a program. It dies with this process, even where nothing else sees
// to that.
func launch(log *os.File, env, words []string) (*process, error) {
	p := &process{cmd: exec.Command(words[0], words[1:]...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = log, log, env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	if err == nil {
		err = p.wait(30 * time.Second)
	}
	return err
}

func (p *process) wait(d time.Duration) error {
	select {
	case <-p.done:
		return nil
	case <-time.After(d):
		return fmt.Errorf("process %d is still there after %v", p.cmd.Process.Pid, d)
	}
}
