package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one running limitd with its output.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when it has ended
}

// output collects what a process prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launch starts limitd in dir; what is still running at the end of the test is killed.
func launch(t testing.TB, dir, name string, args ...string) *process {
	t.Helper()
	return launchBinary(t, tools.limitd, nil, dir, name, args...)
}

// launchBinary is launch with another build, and env besides the test's own.
func launchBinary(t testing.TB, bin string, env []string, dir, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(bin, args...), out: &output{}, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		if p.running() {
			p.kill()
		}
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, tail(p.out.String(), 40))
		}
	})
	return p
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill is kill -9. A process may have ended by itself a moment ago.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Kill); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill -9 %s: %v", p.name, err)
	}
	<-p.done
}

// terminate sends SIGTERM and wants a clean end.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("SIGTERM to %s: %v", p.name, err)
	}
	if code := p.wait(15 * time.Second); code != 0 {
		p.t.Errorf("%s ended with code %d after SIGTERM", p.name, code)
	}
}

// wait waits for the end and returns the exit code.
func (p *process) wait(d time.Duration) int {
	p.t.Helper()
	eventually(p.t, d, "the end of "+p.name, func() bool { return !p.running() })
	return p.exitCode()
}

// exitCode of a process that has ended; -1 if a signal ended it.
func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// limitd runs a verb to its end.
func limitd(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := exec.Command(tools.limitd, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Dir = t.TempDir()
	cmd.Run() // the exit code is part of the answer
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// eventually polls until ok says true; what says what was waited for.
func eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	began := time.Now()
	for !ok() {
		if waited := time.Since(began); waited > d && waited > d+5*machine.since(began) {
			t.Fatalf("not within %v: %s", waited, what)
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
