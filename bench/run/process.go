package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopPatience is how long a process may take to end after SIGTERM.
const stopPatience = 20 * time.Second

// process is a server that this program started. It is ended by its pid, and
// the kernel ends it if this program dies.
type process struct {
	name string
	log  string // file of its output
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// start runs a program with its output appended to the file log. The calling
// goroutine must stay on its thread: a child's life is tied to it.
func start(name, log, program string, args ...string) (*process, error) {
	return startWith(name, log, nil, program, args...)
}

// startWith is start with variables beside those of this program's environment.
func startWith(name, log string, env []string, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		cmd.Wait() // how it ended is in ProcessState
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

// kill is kill -9, and returns when the process is gone.
func (p *process) kill() {
	p.cmd.Process.Kill() // fails only if it is gone already
	<-p.done
}

// stop is SIGTERM, and SIGKILL with an error when that takes too long.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it is gone already
	select {
	case <-p.done:
		return nil
	case <-time.After(stopPatience):
		p.kill()
		return fmt.Errorf("%s did not stop within %s of SIGTERM", p.name, stopPatience)
	}
}

// died describes a process that ended by itself: how, and the end of its log.
func (p *process) died() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s has died: %s", p.name, p.cmd.ProcessState)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s has died: %s; its log ends with:\n%s", p.name, p.cmd.ProcessState, strings.Join(lines[max(0, len(lines)-8):], "\n"))
}

// permanent is an error that no waiting will heal.
type permanent struct{ error }

// await calls try until it returns nil, at most for the given time. It fails at
// once when try says that the error is permanent, or one of the processes has died.
func await(ctx context.Context, what string, limit time.Duration, try func(context.Context) error, alive ...*process) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		last := try(ctx)
		if last == nil {
			return nil
		}
		if errors.As(last, &permanent{}) {
			return fmt.Errorf("%s: %w", what, last)
		}
		for _, p := range alive {
			if !p.running() {
				return p.died()
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), last))
		case <-tick.C:
		}
	}
}

// freeAddrs returns loopback addresses that nobody listens on. All are held
// while they are picked, so that they differ.
func freeAddrs(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer ln.Close()
		addrs[i] = ln.Addr().String()
	}
	return addrs, nil
}
