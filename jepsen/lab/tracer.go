package lab

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

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
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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
		io.Copy(io.Discard, said)
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
