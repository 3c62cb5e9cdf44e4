package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// child is one node of a local cluster.
type child struct {
	node     NodeConfig
	log      string // file of its output
	cmd      *exec.Cmd
	exitSeen bool // its exit was taken from local.exited
}

// start runs the node. The calling goroutine must keep its thread for as long
// as the child shall live.
func (c *child) start(self, file string, exited chan<- *child) error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", c.node.ID, err)
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(self, "serve", "--config", file, "--node", c.node.ID)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // the terminal's Ctrl-C goes to local alone, which stops its children in order
		Pdeathsig: syscall.SIGKILL, // and no node outlives local
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.node.ID, err)
	}
	c.cmd = cmd
	go func() {
		cmd.Wait() // the state it leaves tells more than its error
		exited <- c
	}()
	return nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// state of a child whose exit was reported.
func (c *child) state() *os.ProcessState { return c.cmd.ProcessState }

func (c *child) end() string { return c.state().String() }

// awaitAnswer asks the node until it decides: a peek of nothing, which needs a
// leader and leaves no trace.
func (c *child) awaitAnswer(ctx context.Context) error {
	asked := client{addr: c.node.RESP}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := asked.call(ctx, clientTimeout, "CL.THROTTLE", "limitd:ready", 0, 1, 1, 0)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// logEnd is the last few lines of the child's log.
func (c *child) logEnd() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(len(lines)-5, 0):], []byte("\n")))
}

// shortPath is path as a person would type it from the working directory, if that is shorter.
func shortPath(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return path
	}
	return "." + string(filepath.Separator) + rel
}

// shellWord quotes s for a shell if it needs to be.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=+,@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
