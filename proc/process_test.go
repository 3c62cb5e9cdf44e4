package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parentEnv names the directory of a program that starts another one and is killed.
const parentEnv = "LIMITD_PROC_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		runtime.LockOSThread()
		p, err := Start("sleeper", filepath.Join(dir, "child.log"), nil, "sleep", "60")
		if err == nil {
			fmt.Println(p.PID())
			<-p.done
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const patience = 10 * time.Second

// shell starts a line of shell, and waits until it has printed "ready".
func shell(t *testing.T, script string) *Process {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start("a shell", log, []string{"SAYS=ready"}, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	err = Await(t.Context(), "it is not ready", patience, func(context.Context) error {
		if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "ready") {
			return fmt.Errorf("%q, %v", text, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAProcessThatEndsByItselfIsToldWithTheEndOfItsLog(t *testing.T) {
	p := shell(t, `echo $SAYS; for i in 1 2 3 4 5 6 7 8 9; do echo "line $i."; done; exit 3`)
	err := Await(t.Context(), "it", time.Minute, func(context.Context) error { return errors.New("not yet") }, p)
	if err == nil || !strings.Contains(err.Error(), "a shell has died: exit status 3") || !strings.Contains(err.Error(), "line 9.") || strings.Contains(err.Error(), "line 1.") {
		t.Errorf("its end is told as %v", err)
	}
	if p.Running() || p.ExitCode() != 3 {
		t.Errorf("running %v, exit code %d", p.Running(), p.ExitCode())
	}
	if err := errors.Join(p.Stop(), p.Kill()); err != nil {
		t.Errorf("the end of what has ended: %v", err)
	}
}

func TestSIGTERMIsEnoughForWhoHeedsIt(t *testing.T) {
	p := shell(t, `trap 'exit 7' TERM; echo $SAYS; while :; do sleep 0.01; done`)
	if err := StopAll(p); err != nil || p.ExitCode() != 7 {
		t.Errorf("exit code %d, %v", p.ExitCode(), err)
	}
}

func TestWhoIgnoresSIGTERMIsKilledAndThatIsAnError(t *testing.T) {
	p := shell(t, `trap '' TERM; echo $SAYS; exec sleep 60`)
	err := p.StopWithin(50 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "a shell (pid ") || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it is told as %v", err)
	}
	if p.Running() || p.ExitCode() != -1 {
		t.Errorf("running %v, exit code %d", p.Running(), p.ExitCode())
	}
}

func TestNoProcessOutlivesWhoStartedIt(t *testing.T) {
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), parentEnv+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var child string
	fmt.Fscan(out, &child)
	if _, err := strconv.Atoi(child); err != nil || !alive(child) {
		t.Errorf("no child lives: %q", child)
	}
	parent.Process.Kill()
	parent.Wait()
	err = Await(t.Context(), "the child lives on", patience, func(context.Context) error {
		if alive(child) {
			return errors.New("pid " + child)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// alive says that there is such a process, and not only its exit code for a parent that does not ask.
func alive(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

func TestAwaitDoesNotWaitForWhatCannotHeal(t *testing.T) {
	calls := 0
	err := Await(context.Background(), "it", time.Minute, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return fmt.Errorf("node 1: %w", Permanent(errors.New("never")))
	})
	if calls != 3 || err == nil || !strings.Contains(err.Error(), "it: node 1: never") {
		t.Errorf("after %d calls: %v", calls, err)
	}
	err = Await(context.Background(), "it", time.Millisecond, func(context.Context) error { return errors.New("not yet") })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("what takes too long is told as %v", err)
	}
}

func TestFreeAddressesDifferAndAreFree(t *testing.T) {
	addrs, err := FreeAddrs(20)
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		ln, err := net.Listen("tcp", addr) // fails if it was there twice
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
}
