package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// movedClock is the machine's clock, moved by hand: what is added to its boot
// clock and to its wall clock.
type movedClock struct {
	boot, wall atomic.Int64
	bootID     string
}

func (c *movedClock) Boot() int64 { return machineClock{}.Boot() + c.boot.Load() }
func (c *movedClock) Wall() int64 { return machineClock{}.Wall() + c.wall.Load() }
func (c *movedClock) BootID() string {
	if c.bootID == "" {
		return "boot-1"
	}
	return c.bootID
}

// testNode is a node under test, and what it told.
type testNode struct {
	*Node
	cluster *testCluster
	cfg     Config
	clock   *movedClock

	mu   sync.Mutex
	died error // the reason given to Fatal
	out  error // the reason given to Removed
}

func (tn *testNode) fatalReason() error {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	return tn.died
}

func (tn *testNode) removedReason() error {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	return tn.out
}

// The timers of the tests' nodes are short, and longer on a machine with so much else
// to do that they would run out while nothing is wrong. Patience costs nothing where
// all is well.
var testHeartbeat = onThisMachine(200 * time.Millisecond)

const testPatience = 30 * time.Second

// onThisMachine is d, times how many there are for each core's turn, if that is more
// than two.
func onThisMachine(d time.Duration) time.Duration {
	var load float64
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Sscan(string(b), &load)
	}
	waiting := load / float64(runtime.NumCPU())
	return time.Duration(float64(d) * min(max(waiting/2, 1), 5))
}

// busy says that the timers are not what they are on a machine that has time.
func busy() bool { return testHeartbeat > 200*time.Millisecond || onThisMachine(1) > 1 }

// testCluster is some nodes in this process, over loopback.
type testCluster struct {
	t     testing.TB
	mu    sync.Mutex // for those that look while a test starts nodes
	nodes []*testNode
}

// newTestCluster makes a cluster of n nodes and does not start it.
func newTestCluster(t testing.TB, n int, change ...func(*Config)) *testCluster {
	t.Helper()
	c := &testCluster{t: t}
	var members []Member
	for i := range n {
		members = append(members, Member{ID: fmt.Sprintf("n%d", i+1), Resp: fmt.Sprintf("127.0.0.1:%d", 6381+i), Peer: freeAddr(t)})
	}
	for _, m := range members {
		cfg := Config{
			ID: m.ID, Members: members, DataDir: t.TempDir(),
			Heartbeat: testHeartbeat, Election: testHeartbeat, Lease: testHeartbeat,
			FoundingWait: time.Millisecond,
			Version:      "test", Logger: testLogger(t, m.ID),
			LogStore: testStore(),
		}
		for _, f := range change {
			f(&cfg)
		}
		c.add(cfg)
	}
	t.Cleanup(c.stop)
	return c
}

// add makes a node and does not start it.
func (c *testCluster) add(cfg Config) *testNode {
	tn := &testNode{cluster: c, clock: &movedClock{}, cfg: cfg}
	note := func(at *error) func(error) {
		return func(err error) {
			tn.mu.Lock()
			*at = err
			tn.mu.Unlock()
		}
	}
	tn.cfg.Clock, tn.cfg.Fatal, tn.cfg.Removed = tn.clock, note(&tn.died), note(&tn.out)
	c.mu.Lock()
	c.nodes = append(c.nodes, tn)
	c.mu.Unlock()
	return tn
}

// testStore is the log store of tests that do not choose one: the default, or what the
// environment says, so that all of them can be run with each.
func testStore() string { return cmp.Or(os.Getenv("LIMITD_TEST_LOG_STORE"), NewStore) }

func startTestCluster(t testing.TB, n int, change ...func(*Config)) *testCluster {
	t.Helper()
	c := newTestCluster(t, n, change...)
	for _, tn := range c.nodes {
		c.start(tn)
	}
	return c
}

func testLogger(t testing.TB, id string) *slog.Logger {
	if os.Getenv("LIMITD_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", id, "test", t.Name())
}

// given are the addresses that tests of this process have got: the kernel may
// choose a port again before its first test listens on it.
var given sync.Map

// freeAddr is a loopback address that nobody listens on.
func freeAddr(t testing.TB) string {
	t.Helper()
	for {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := ln.Addr().String()
		ln.Close()
		if _, again := given.LoadOrStore(addr, true); !again {
			return addr
		}
	}
}

// start opens and starts a node; prepare is called between the two.
func (c *testCluster) start(tn *testNode, prepare ...func(*Node)) {
	c.t.Helper()
	n, err := Open(tn.cfg, nil)
	if err != nil {
		c.t.Fatalf("open %s: %v", tn.cfg.ID, err)
	}
	for _, f := range prepare {
		f(n)
	}
	c.mu.Lock()
	tn.Node = n
	c.mu.Unlock()
	if err := n.Start(); err != nil {
		c.t.Fatalf("start %s: %v", tn.cfg.ID, err)
	}
}

// running are the nodes that were started and not closed, but one.
func (c *testCluster) running(but *testNode) []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var up []*Node
	for _, tn := range c.nodes {
		if tn != but && tn.Node != nil && !tn.isStopping() {
			up = append(up, tn.Node)
		}
	}
	return up
}

func (c *testCluster) stop() {
	for _, tn := range c.nodes {
		if tn.Node != nil {
			tn.Close()
		}
	}
}

// leader waits for a node that may decide, other than those given.
func (c *testCluster) leader(but ...*testNode) *testNode {
	c.t.Helper()
	var found *testNode
	eventually(c.t, "a leader", func() bool {
	nodes:
		for _, tn := range c.nodes {
			for _, b := range but {
				if b == tn {
					continue nodes
				}
			}
			if tn.Node != nil && tn.Leading() {
				found = tn
				return true
			}
		}
		return false
	})
	return found
}

// others are the nodes but one.
func (c *testCluster) others(tn *testNode) []*testNode {
	var rest []*testNode
	for _, o := range c.nodes {
		if o != tn {
			rest = append(rest, o)
		}
	}
	return rest
}

var errCut = errors.New("cut")

// sever cuts raft's links between a node and all others, both ways.
func (c *testCluster) sever(tn *testNode) {
	c.t.Helper()
	for _, n := range c.nodes {
		eventually(c.t, n.cfg.ID+" to run raft", func() bool { return n.raft.Load() != nil })
	}
	all := func(raft.ServerID) error { return errCut }
	tn.trans.cut.Store(&all)
	for _, o := range c.others(tn) {
		one := func(id raft.ServerID) error {
			if id == tn.serverID() {
				return errCut
			}
			return nil
		}
		o.trans.cut.Store(&one)
	}
}

func (c *testCluster) heal() {
	for _, tn := range c.nodes {
		if tn.raft.Load() != nil {
			tn.trans.cut.Store(nil)
		}
	}
}

// put commits a batch that writes key, on n if it leads. On a busy machine it may
// have lost the leadership since it was asked; then on whoever leads.
func put(t testing.TB, n *testNode, key string) {
	t.Helper()
	eventually(t, "a batch with "+key+" to take effect", func() bool {
		if _, o := tryPut(n, key); o == fsm.Applied {
			return true
		}
		for _, other := range n.cluster.others(n) {
			if other.Node == nil {
				continue
			}
			if _, o := tryPut(other, key); o == fsm.Applied {
				return true
			}
		}
		return false
	})
}

func tryPut(n *testNode, key string) (uint64, fsm.Outcome) {
	turn, err := n.Begin()
	if err != nil {
		return 0, fsm.Refused
	}
	return n.Commit(putEntry(turn, key))
}

func putEntry(turn fsm.Turn, key string) []byte {
	return fsm.AppendEntry(nil, turn, []fsm.Effect{{
		Op: fsm.OpReplace, Key: []byte(key), Ident: []byte{1}, State: []byte("state of " + key), Expiry: turn.At + int64(time.Hour),
	}})
}

func has(n *testNode, key string) bool {
	t := n.FSM().Table()
	_, _, ok := t.Get(t.Hash(0, []byte(key)), 0, []byte(key), []byte{1}, nil)
	return ok
}

// eventually polls until ok, for as long as a test may wait.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testPatience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", testPatience, what)
		}
	}
}
