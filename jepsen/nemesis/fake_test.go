package nemesis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
)

// fakeLab is a cluster that behaves: who runs answers, the first member that runs leads,
// changes are made at once. It notes what was done.
type fakeLab struct {
	lab.Lab
	dir     string // of the history
	mu      sync.Mutex
	nodes   []*fakeNode
	cuts    [][]lab.Cut
	shapes  []map[lab.Cut]lab.Quality
	members map[string]string // id: voter, nonvoter
	entries int
	asked   []string
	olders  []int // how many were on the older binary, before each start
}

func (l *fakeLab) older() (many int) {
	for _, n := range l.nodes {
		if n.older {
			many++
		}
	}
	return many
}

type fakeNode struct {
	lab.Node
	l    *fakeLab
	id   string
	data string

	older, running, paused, slow, full, stalled, injected bool
	drift                                                 float64
	code                                                  int    // of the next start: it ends at once
	says                                                  string // its last line then
	refuses                                               string // the last line of its older binary, which ends with it
	starts                                                [][]string
	wiped                                                 int
}

func newFakeLab(voters, spares int) *fakeLab {
	l := &fakeLab{members: map[string]string{}}
	for i := range voters + spares {
		n := &fakeNode{l: l, id: fmt.Sprintf("n%d", i+1), data: data(), drift: 1}
		if i < voters {
			n.running = true
			l.members[n.id] = "voter"
		}
		l.nodes = append(l.nodes, n)
	}
	return l
}

// data is a data directory, of all nodes.
var data = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "limitd-fake-")
	for _, f := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), []byte("what it was"), 0o600))
	}
	if err != nil {
		panic(err)
	}
	return dir
})

// TestMain takes it away.
func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(data())
	os.Exit(code)
}

func (l *fakeLab) Network() lab.Network { return l }
func (l *fakeLab) Nodes() (all []lab.Node) {
	for _, n := range l.nodes {
		all = append(all, n)
	}
	return all
}
func (l *fakeLab) node(id string) *fakeNode {
	return l.nodes[slices.IndexFunc(l.nodes, func(n *fakeNode) bool { return n.id == id })]
}
func (l *fakeLab) Node(id string) lab.Node { return l.node(id) }

func (l *fakeLab) Cut(cuts []lab.Cut) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts = append(l.cuts, cuts)
	return nil
}

func (l *fakeLab) Shape(links map[lab.Cut]lab.Quality) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shapes = append(l.shapes, links)
	return nil
}

func (l *fakeLab) Sever(a, b string) error {
	if a == b {
		return errors.New("a node severed from itself")
	}
	return nil
}

func (n *fakeNode) do(f func()) error {
	n.l.mu.Lock()
	defer n.l.mu.Unlock()
	f()
	return nil
}

func (n *fakeNode) ID() string    { return n.id }
func (n *fakeNode) RESP() string  { return n.id + ":6380" }
func (n *fakeNode) Data() string  { return n.data }
func (n *fakeNode) Running() bool { n.l.mu.Lock(); defer n.l.mu.Unlock(); return n.running }
func (n *fakeNode) Log() io.Reader {
	return strings.NewReader("first\n" + n.says + "\n")
}
func (n *fakeNode) Exited() (int, bool)             { return n.code, !n.Running() && n.code != 0 }
func (n *fakeNode) Kill() error                     { return n.do(func() { n.running = false }) }
func (n *fakeNode) PowerCut() error                 { return n.Kill() }
func (n *fakeNode) Stop(time.Duration) (int, error) { return 0, n.Kill() }
func (n *fakeNode) Pause() error                    { return n.do(func() { n.paused = true }) }
func (n *fakeNode) Resume() error                   { return n.do(func() { n.paused = false }) }
func (n *fakeNode) CPU(share float64) error         { return n.do(func() { n.slow = share != 0 }) }
func (n *fakeNode) Fill(int64) error                { return n.do(func() { n.full = true }) }
func (n *fakeNode) Drain() error                    { return n.do(func() { n.full = false }) }
func (n *fakeNode) Stall(on bool) error             { return n.do(func() { n.stalled = on }) }
func (n *fakeNode) Inject(spec string) error        { return n.do(func() { n.injected = spec != "" }) }
func (n *fakeNode) JumpWall(time.Duration) error    { return nil }
func (n *fakeNode) DriftWall(rate float64) error    { return n.do(func() { n.drift = rate }) }
func (n *fakeNode) Damage(d lab.Damage) error {
	if n.Running() {
		return errors.New("the files of a node that runs")
	}
	if _, err := os.Stat(filepath.Join(n.data, d.File)); err != nil {
		return err
	}
	return nil
}

func (n *fakeNode) Wipe() error {
	if n.Running() {
		return errors.New("the disk of a node that runs")
	}
	return n.do(func() { n.wiped++ })
}

func (n *fakeNode) Older() bool { n.l.mu.Lock(); defer n.l.mu.Unlock(); return n.older }
func (n *fakeNode) StartOlder(args ...string) error {
	if err := n.start(true, args); err != nil || n.refuses == "" {
		return err
	}
	return n.do(func() { n.running, n.says = false, n.refuses })
}
func (n *fakeNode) Start(args ...string) error { return n.start(false, args) }

func (n *fakeNode) start(older bool, args []string) error {
	if n.Running() {
		return fmt.Errorf("%s runs already", n.id)
	}
	return n.do(func() {
		n.older, n.l.olders = older, append(n.l.olders, n.l.older())
		n.starts = append(n.starts, args)
		if slices.Contains(args, "--join") && n.wiped > 0 {
			n.l.members[n.id], n.code = "voter", 0
		}
		n.running = n.code == 0
	})
}

// Dial is a connection to a node, which answers what nemeses and operators ask.
func (l *fakeLab) Dial(id string, _ lab.Port, _ time.Duration) (net.Conn, error) {
	if !l.node(id).Running() {
		return nil, errors.New("nobody")
	}
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		for in := bufio.NewReader(there); ; {
			var args []string
			var n, size int
			if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil || n < 1 || n > 10 {
				return
			}
			for range n {
				if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil || size < 0 || size > 100 {
					return
				}
				b := make([]byte, size+2)
				io.ReadFull(in, b)
				args = append(args, string(b[:size]))
			}
			if _, err := io.WriteString(there, l.answer(id, args)); err != nil {
				return
			}
		}
	}()
	return here, nil
}

func (l *fakeLab) answer(id string, args []string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch line := strings.Join(args, " "); {
	case line == "INFO":
		role, leads := "follower", l.leading() == id
		if leads {
			role = "leader"
		} else if l.members[id] == "nonvoter" {
			role = "nonvoter"
		}
		l.entries += 100
		text := fmt.Sprintf("raft_role:%s\r\nraft_term:1\r\nready:1\r\nraft_commit_index:%d\r\n", role, l.entries)
		return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	case line == "RL.CLUSTER NODES":
		text := fmt.Sprintf("*%d\r\n", len(l.nodes))
		for _, n := range l.nodes {
			raft, role := "", ""
			if l.members[n.id] != "" {
				raft, role = n.id+"-1", l.members[n.id]
			}
			text += fmt.Sprintf("*6\r\n+id\r\n+%s\r\n+raft_id\r\n+%s\r\n+role\r\n+%s\r\n", n.id, raft, role)
		}
		return text
	case args[0] == "RL.CLUSTER":
		l.asked = append(l.asked, line)
		who := id
		if len(args) == 3 {
			who = args[2]
		} else if args[1] != "LEAVE" {
			return "-ERR wrong number of arguments\r\n"
		}
		if !slices.ContainsFunc(l.nodes, func(n *fakeNode) bool { return n.id == who }) {
			return "-ERR no such member\r\n"
		}
		switch args[1] {
		case "REMOVE", "LEAVE":
			delete(l.members, who)
			if n := l.node(who); n.wiped == 0 {
				n.running = false
			}
		case "DEMOTE":
			l.members[who] = "nonvoter"
		case "PROMOTE":
			l.members[who] = "voter"
		}
		return "+OK\r\n"
	}
	return "*5\r\n:0\r\n:1\r\n:1\r\n:-1\r\n:0\r\n"
}

func (l *fakeLab) leading() string {
	for _, n := range l.nodes {
		if n.running && l.members[n.id] == "voter" {
			return n.id
		}
	}
	return ""
}

// newEnv is an environment of that cluster.
func newEnv(t *testing.T, voters, spares int) (*Env, *fakeLab) {
	t.Helper()
	l := newFakeLab(voters, spares)
	l.dir = t.TempDir()
	rec, err := history.NewRecorder(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, n := range l.nodes[:voters] {
		ids = append(ids, n.id)
	}
	e := &Env{Lab: l, Roster: NewRoster(ids...), Recorder: rec, Wanted: voters,
		Ask: func(node string, d time.Duration) (net.Conn, error) { return l.Dial(node, lab.RESPPort, d) }}
	return e.As("test", rand.New(rand.NewPCG(1, 1))), l
}

// inBubble runs a test with time that passes as soon as all wait for it.
func inBubble(t *testing.T, name string, test func(*testing.T, context.Context)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			test(t, ctx)
		})
	})
}
