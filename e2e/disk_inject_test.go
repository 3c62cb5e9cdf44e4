package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// inject makes a system call on one file of a running node fail, until undo or
// until the node has ended. fault is what strace(1) calls an injection:
// "fdatasync:error=EIO:when=1" fails the first one of each thread.
func inject(t testing.TB, nd *node, file, fault string) (undo func()) {
	t.Helper()
	call, _, _ := strings.Cut(fault, ":")
	cmd := exec.Command("strace", "-f", "-o", "/dev/null", "-p", fmt.Sprint(nd.pid()),
		"-P", filepath.Join(nd.data, file), "-e", "trace="+call, "-e", "inject="+fault)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // then it lets the node go
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	switch {
	case err == nil:
	case errors.Is(err, exec.ErrNotFound) && os.Getenv("LIMITD_REQUIRE_ROOT") == "":
		t.Skip("NOT TESTED: a failing disk needs strace: apt-get install strace")
	default:
		t.Fatal(err)
	}
	words := make([]byte, 0, 1<<10)
	for !strings.Contains(string(words), "attached") {
		some := make([]byte, 1<<10)
		n, err := said.Read(some)
		if words = append(words, some[:n]...); err != nil {
			cmd.Wait()
			t.Fatalf("strace of %s: %s (%v)", nd.id, words, err)
		}
	}
	go io.Copy(io.Discard, said)
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	undo = sync.OnceFunc(func() {
		cmd.Process.Signal(syscall.SIGTERM) // it may have ended with the node
		select {
		case <-ended:
		case <-time.After(2 * time.Second): // a signal in the moment before it waits for the node is lost on it
			cmd.Process.Kill()
			<-ended
		}
	})
	t.Cleanup(undo)
	return undo
}

// stopsItself waits until a node has stopped by itself, and checks that its last
// line says why.
func stopsItself(t testing.TB, nd *node, words ...string) {
	t.Helper()
	if code := nd.wait(20 * time.Second); code != 3 {
		t.Errorf("%s ended with code %d, want 3", nd.id, code)
	}
	last := tail(nd.out.String(), 1)
	for _, w := range append(words, "limitd: this node has stopped itself: ") {
		if !strings.Contains(last, w) {
			t.Errorf("the last line of %s does not say %q: %s", nd.id, w, last)
		}
	}
}
