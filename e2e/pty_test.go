package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a program that believes that a person sits in front of it.
type terminal struct {
	t    testing.TB
	keys *os.File // what the person types goes there
	out  *output
}

// openTerminal starts a program at a terminal of its own; it is killed at the end of the test.
func openTerminal(t testing.TB, name string, args ...string) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Fd makes the file one that blocks, which is well: the copy below ends with the program.
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term := &terminal{t, keys, &output{}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		b := make([]byte, 4096)
		for {
			n, err := keys.Read(b)
			term.out.Write(b[:n])
			if err != nil {
				return // the program has ended
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		<-over
		keys.Close()
	})
	return term
}

var controls = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\r`)

// screen is what was shown, without colours and movements.
func (term *terminal) screen() string { return controls.ReplaceAllString(term.out.String(), "") }

func (term *terminal) typeIn(text string) {
	term.t.Helper()
	if _, err := term.keys.WriteString(text); err != nil {
		term.t.Fatal(err)
	}
}

// await waits until the screen has shown text.
func (term *terminal) await(text string) {
	term.t.Helper()
	defer func() {
		if term.t.Failed() {
			term.t.Logf("the screen has shown:\n%s", term.screen())
		}
	}()
	eventually(term.t, 10*time.Second, fmt.Sprintf("the screen shows %q", text), func() bool { return strings.Contains(term.screen(), text) })
}
