package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is one process of a node. What it prints goes to the node's log.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	paused bool // guarded by the node
}

// launch starts a program in a node's namespace.
func launch(netns string, log *os.File, env []string, name string, args ...string) (*process, error) {
	p := &process{
		cmd:  exec.Command("nsenter", append([]string{"--net=/run/netns/" + netns, name}, args...)...),
		done: make(chan struct{}),
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = log, log, env
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

// tracer is strace, attached to a process, that makes system calls fail or wait.
type tracer struct {
	cmd   *exec.Cmd
	ended chan struct{}
	once  sync.Once
}

// attach starts strace on a process. Only calls on the file count.
func attach(pid int, file, call, spec string) (*tracer, error) {
	t := &tracer{ended: make(chan struct{})}
	t.cmd = exec.Command("strace", "-f", "-o", "/dev/null", "-p", fmt.Sprint(pid), "-P", file, "-e", "trace="+call, "-e", "inject="+spec)
	said, err := t.cmd.StderrPipe()
	if err == nil {
		err = t.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	words := make([]byte, 0, 1<<10)
	for !bytes.Contains(words, []byte("attached")) {
		some := make([]byte, 1<<10)
		n, err := said.Read(some)
		if words = append(words, some[:n]...); err != nil {
			t.cmd.Wait()
			return nil, fmt.Errorf("strace of process %d: %s: %w", pid, words, err)
		}
	}
	go func() {
		for some := make([]byte, 1<<10); ; {
			if _, err := said.Read(some); err != nil {
				break
			}
		}
		t.cmd.Wait()
		close(t.ended)
	}()
	return t, nil
}

// end lets the process go. A signal that comes in the moment before strace waits for
// the process is lost on it, hence the second one.
func (t *tracer) end() {
	t.once.Do(func() {
		t.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-t.ended:
		case <-time.After(2 * time.Second):
			t.cmd.Process.Kill()
			<-t.ended
		}
	})
}
