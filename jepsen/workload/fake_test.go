package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"limitd/jepsen/history"
)

// fake is a cluster of nodes that are a function: what one answers to a command, raw.
type fake struct {
	answer func(node string, cmd []string) string // "" ends the connection

	mu    sync.Mutex
	dials []string
	down  map[string]bool
}

func (f *fake) dial(node string, _ time.Duration) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials = append(f.dials, node)
	if f.down[node] {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	go f.serve(node, there)
	return here, nil
}

// serve answers RL.TRACE and SELECT with OK by itself.
func (f *fake) serve(node string, c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 64<<10) // takes a whole write, so that nobody waits for the other
	for {
		cmd, err := readCommand(in)
		if err != nil {
			return
		}
		reply := "+OK\r\n"
		if cmd[0] != "RL.TRACE" && cmd[0] != "SELECT" {
			reply = f.answer(node, cmd)
		}
		if reply == "" {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func readCommand(in *bufio.Reader) (cmd []string, err error) {
	number := func() int {
		var line string
		if line, err = in.ReadString('\n'); err != nil {
			return 0
		}
		var n int
		n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		return n
	}
	n := number()
	for i := 0; i < n && err == nil; i++ {
		b := make([]byte, number()+2)
		if err == nil {
			_, err = io.ReadFull(in, b)
		}
		cmd = append(cmd, string(b[:len(b)-2]))
	}
	return cmd, err
}

// allow is a node for which all is allowed.
func allow(_ string, cmd []string) string {
	switch cmd[0] {
	case "CL.THROTTLE":
		return "*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:1\r\n"
	case "INFO":
		return role("follower", 1)
	case "RL.TIME":
		return "*1\r\n:1\r\n"
	case "RL.LIST":
		return "*1\r\n*4\r\n$8\r\nthrottle\r\n$0\r\n\r\n:7\r\n:1\r\n"
	case "RL.HASH":
		return "*1\r\n*2\r\n:7\r\n$1\r\na\r\n"
	case "TYPE":
		return "+limit\r\n"
	case "FLUSHDB":
		return "+OK\r\n"
	}
	return ":1\r\n"
}

// role is INFO of a node in that role.
func role(role string, term int) string {
	text := fmt.Sprintf("# Raft\r\nraft_role:%s\r\nraft_term:%d\r\n", role, term)
	return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
}

// start makes a workload on fake nodes n1, n2 and n3, and returns what ends it and reads
// its history.
func (f *fake) start(t *testing.T, c Config) (*Workload, func() []history.Event) {
	t.Helper()
	dir := t.TempDir()
	r, err := history.NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Nodes == nil {
		c.Nodes = func() []string { return []string{"n1", "n2", "n3"} }
	}
	if f.answer == nil {
		f.answer = allow
	}
	c.Recorder, c.Dial = r, f.dial
	c.Workers, c.Rate = max(c.Workers, 1), max(c.Rate, 1)
	return New(c), func() []history.Event {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := history.ReadEvents(dir)
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, all)
		return all
	}
}

// wellFormed: a process has one operation open at a time and is silent after an info;
// each tag is invoked once and completed once.
func wellFormed(t *testing.T, events []history.Event) {
	t.Helper()
	open := map[int]uint64{}
	dead := map[int]bool{}
	seen := map[uint64]int{}
	for _, e := range events {
		if e.Tag == 0 || dead[e.Process] {
			t.Fatalf("event %d of process %d: no tag, or the process is dead", e.Index, e.Process)
		}
		seen[e.Tag]++
		if e.Type == history.Invoke {
			if open[e.Process] != 0 || seen[e.Tag] != 1 || len(e.Cmd) == 0 {
				t.Fatalf("event %d: process %d has %d open, the tag %d was seen %d times", e.Index, e.Process, open[e.Process], e.Tag, seen[e.Tag])
			}
			open[e.Process] = e.Tag
			continue
		}
		if open[e.Process] != e.Tag || seen[e.Tag] != 2 {
			t.Fatalf("event %d completes %d of process %d, which has %d open", e.Index, e.Tag, e.Process, open[e.Process])
		}
		if (e.Error == "") != (e.Type == history.OK) {
			t.Fatalf("event %d: %s with the error %q", e.Index, e.Type, e.Error)
		}
		open[e.Process] = 0
		dead[e.Process] = e.Type == history.Info
	}
	for p, tag := range open {
		if tag != 0 {
			t.Fatalf("process %d ends with %d open", p, tag)
		}
	}
}

// members changes while clients ask.
type members struct{ atomic.Pointer[[]string] }

func memberList(nodes ...string) *members {
	m := &members{}
	m.set(nodes...)
	return m
}

func (m *members) set(nodes ...string) { m.Store(&nodes) }
func (m *members) list() []string      { return *m.Load() }

// calls are takes on keys k1, k2, ….
func (w *Workload) calls(n int) (all []call) {
	for i := range n {
		k := Key{Name: fmt.Sprintf("k%d", i+1), class: &classes[0]}
		all = append(all, w.call(operation("take"), k, k.throttle(1)))
	}
	return all
}
