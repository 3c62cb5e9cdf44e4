package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// login is who a driver says it is; empty: nobody, or a password alone.
type login struct{ user, password string }

// driver is a running driver of one client. It is asked one line at a time.
type driver struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // closed when the driver has ended
	said  *tail
	// How long one answer may take: clients that wait for a node to come back do
	// so for many seconds.
	patience time.Duration
}

var errNoAnswer = errors.New("no answer")

// answer is what a driver said to one line.
type answer struct {
	ok    bool
	text  string
	words []string // of text
}

// number is the i-th word, -1 if there is none, or it is no number.
func (a answer) number(i int) int {
	if i >= len(a.words) {
		return -1
	}
	n, err := strconv.Atoi(a.words[i])
	if err != nil {
		return -1
	}
	return n
}

// startDriver starts a client's driver for a node at addr.
func startDriver(c *client, dir, addr string, as login) (*driver, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	argv := make([]string, len(c.driver), len(c.driver)+4)
	for i, arg := range c.driver {
		if name, ok := strings.CutPrefix(arg, "bin/"); ok {
			arg = filepath.Join(dir, "bin", name)
		}
		argv[i] = arg
	}
	argv = append(argv, host, port, as.user, as.password)
	d := &driver{cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 1), said: &tail{}, patience: time.Minute}
	d.cmd.Stderr = d.said
	d.cmd.WaitDelay = time.Second // what it has started may have its stderr
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %v: %w", argv, err)
	}
	go func() {
		for in := bufio.NewScanner(stdout); in.Scan(); {
			d.lines <- in.Text()
		}
		d.cmd.Wait() // until stderr is read too; how it ended does not matter
		close(d.lines)
	}()
	return d, nil
}

// ask sends a line and returns the answer. An error means that the driver is of
// no more use.
func (d *driver) ask(words ...any) (answer, error) {
	line := strings.TrimSuffix(fmt.Sprintln(words...), "\n")
	fmt.Fprintln(d.stdin, line) // fails only if the driver has ended, which shows below
	timeout := time.NewTimer(d.patience)
	defer timeout.Stop()
	select {
	case said, ok := <-d.lines:
		if !ok {
			return answer{}, fmt.Errorf("the driver ended at %q%s", line, d.said)
		}
		status, text, _ := strings.Cut(said, " ")
		if status != "ok" && status != "err" {
			return answer{}, fmt.Errorf("the driver answered %q to %q, which begins neither with ok nor with err%s", said, line, d.said)
		}
		return answer{ok: status == "ok", text: text, words: strings.Fields(text)}, nil
	case <-timeout.C:
		return answer{}, fmt.Errorf("%w to %q within %s%s", errNoAnswer, line, d.patience, d.said)
	}
}

// stop ends the driver.
func (d *driver) stop() {
	fmt.Fprintln(d.stdin, "quit") // fails only if it has ended
	d.stdin.Close()
	kill := time.AfterFunc(5*time.Second, func() { d.cmd.Process.Kill() })
	defer kill.Stop()
	for range d.lines { // until it has ended
	}
}

// tail keeps the end of what a driver wrote to stderr.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 1500

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

// String is for the end of an error.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(string(t.text)); text != "" {
		return "\n    its stderr ends with: " + strings.ReplaceAll(text, "\n", "\n    ")
	}
	return ""
}
