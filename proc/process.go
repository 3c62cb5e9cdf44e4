// Package proc runs the programs of those who ask built binaries: it starts them, waits
// for what they are to do, notices when one ends by itself, and ends them by pid. What
// it started does not outlive who started it, whatever becomes of that.
//
// It knows nothing of limitd, and imports nothing of ours; [limitd/proc/nodes] runs limitd's
// nodes with it.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// stopPatience is how long a process may take to end after SIGTERM.
	stopPatience = 20 * time.Second
	// killPatience is how long the kernel may take to end one: no signal reaches a
	// process that waits for a disk that hangs.
	killPatience = 30 * time.Second
	// logEnd is how many lines of its log tell why a process has died.
	logEnd = 8
)

// Process is a program that was started.
type Process struct {
	name string
	log  string // file of its output
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// Start runs a program with its output appended to the file log, and with env beside the
// variables of this program; name is what errors call it. The calling goroutine must
// stay on its thread: the kernel ends the process with the thread that started it.
func Start(name, log string, env []string, program string, args ...string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer out.Close() // the process has its own
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true, // a Ctrl-C is for who started it, who ends it in order
		Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	return p, nil
}

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Running says that it has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode is that of a process that has ended; -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends a signal. That the process has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s to %s: %w", sig, p.name, err)
	}
	return nil
}

// Kill is kill -9. It returns when the process is gone, or an error after 30 s.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	return p.wait(syscall.SIGKILL, killPatience)
}

// Stop is [Process.StopWithin] 20 s.
func (p *Process) Stop() error { return p.StopWithin(stopPatience) }

// StopWithin is SIGTERM, and SIGKILL and an error if the process is there after d.
func (p *Process) StopWithin(d time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.wait(syscall.SIGTERM, d); err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// StopAll stops processes, one after the other.
func StopAll(procs ...*Process) error {
	var errs []error
	for _, p := range procs {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

func (p *Process) wait(after syscall.Signal, d time.Duration) error {
	select {
	case <-p.done:
		return nil
	case <-time.After(d):
		return fmt.Errorf("%s (pid %d) did not end within %s of the signal %q", p.name, p.PID(), d, after)
	}
}

// died describes a process that ended by itself: how, and the end of its log.
func (p *Process) died() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s has died: %s (%w)", p.name, p.cmd.ProcessState, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s has died: %s; its log ends with:\n%s", p.name, p.cmd.ProcessState, strings.Join(lines[max(0, len(lines)-logEnd):], "\n"))
}
