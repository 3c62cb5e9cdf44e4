package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

func TestLogMustContinueTheSnapshot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		first, last uint64
		termAt      uint64
		index, term uint64
		want        continuity
	}{
		{"nothing at all", 0, 0, 0, 0, 0, continues},
		{"a log from the first entry on", 1, 50, 0, 0, 0, continues},
		{"no snapshot, and a log that starts later", 7, 50, 0, 0, 0, gap},
		{"a snapshot and no log", 0, 0, 0, 100, 3, continues},
		{"the log goes on where the snapshot ends", 101, 150, 0, 100, 3, continues},
		{"the log holds the snapshot's last entry", 40, 150, 3, 100, 3, continues},
		{"the log ends with the snapshot's last entry", 40, 100, 3, 100, 3, continues},
		{"entries between the two are gone", 102, 150, 0, 100, 3, gap},
		{"the log ends before the snapshot", 40, 99, 0, 100, 3, diverges},
		{"the log has another entry there", 40, 150, 2, 100, 3, diverges},
		{"the log starts with another entry there", 100, 150, 2, 100, 3, diverges},
	} {
		if got := judgeLog(tc.first, tc.last, tc.termAt, tc.index, tc.term); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// oneStopped is a cluster of one that took a snapshot, wrote some more, and was
// stopped. With cut, its log does not reach back to the first entry.
func oneStopped(t *testing.T, cut bool) (*testCluster, *testNode) {
	t.Helper()
	c := startTestCluster(t, 1)
	n := c.leader()
	for i := range 20 {
		put(t, n, fmt.Sprint("key", i))
	}
	if err := n.takeSnapshot(n.raft.Load()); err != nil {
		t.Fatal(err)
	}
	m, _ := n.snapshots().Meta()
	put(t, n, "later")
	if cut {
		if err := n.cache.DeleteRange(1, m.Index-3); err != nil {
			t.Fatal(err)
		}
	}
	n.Close()
	return c, n
}

// mendsAlone is what a cluster of one is told to type.
const mendsAlone = "`limitd snapshot restore FILE --data-dir"

// refuses opens a node that must not open, and checks what it says.
func refuses(t *testing.T, n *testNode, words ...string) {
	t.Helper()
	opened, err := Open(n.cfg, nil)
	if err == nil {
		err = opened.Start()
		opened.Close()
	}
	if err == nil {
		t.Fatal("it was taken for whole")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the refusal does not say %q: %v", w, err)
		}
	}
}

func TestNodeGoesOnFromSnapshotAndLog(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		c, n := oneStopped(t, cut)
		want := n.FSM().State()
		c.start(n)
		l := c.leader()
		if got := l.FSM().State(); got.Last <= want.Last || got.ClusterID != want.ClusterID { // the leadership began with a batch
			t.Errorf("cut %v: it came back with %+v, it had %+v", cut, got, want)
		}
		for _, key := range []string{"key3", "later"} {
			if !has(l, key) {
				t.Errorf("cut %v: %s is gone", cut, key)
			}
		}
	}
}

func TestMissingSnapshotFile(t *testing.T) {
	t.Parallel()
	c, n := oneStopped(t, false)
	remove(t, n.snapshots().Path())
	c.start(n)
	if l := c.leader(); !has(l, "key3") || !has(l, "later") {
		t.Error("the log holds everything, and the state was not rebuilt")
	}
	_, n = oneStopped(t, true)
	remove(t, n.snapshots().Path())
	refuses(t, n, n.snapshots().Path(), n.logs.path, "is lost", mendsAlone)
}

func TestDamagedSnapshotFile(t *testing.T) {
	t.Parallel()
	damage := map[string]func(b []byte) []byte{
		"cut in half": func(b []byte) []byte { return b[:len(b)/2] },
		"a record":    func(b []byte) []byte { return bytes.Replace(b, []byte("state of key3"), []byte("state of KEY3"), 1) },
	}
	for name, hurt := range damage {
		t.Run(name, func(t *testing.T) {
			c, n := oneStopped(t, false)
			rewrite(t, n.snapshots().Path(), hurt)
			c.start(n)
			if l := c.leader(); !has(l, "key3") || !has(l, "later") {
				t.Error("the log holds everything, and the state was not rebuilt")
			}
			if aside, _ := filepath.Glob(n.snapshots().Path() + ".damaged-*"); len(aside) != 1 {
				t.Errorf("the damaged file was not set aside: %v", aside)
			}
			_, n = oneStopped(t, true)
			rewrite(t, n.snapshots().Path(), hurt)
			refuses(t, n, n.snapshots().Path(), "damaged", mendsAlone)
		})
	}
}

// Peers may ask for the status as soon as the peer port is open. (Under the race
// detector this failed.)
func TestStatusWhileADamagedSnapshotIsReplaced(t *testing.T) {
	t.Parallel()
	c, tn := oneStopped(t, false)
	rewrite(t, tn.snapshots().Path(), func(b []byte) []byte {
		return bytes.Replace(b, []byte("state of key3"), []byte("state of KEY3"), 1)
	})
	n, err := Open(tn.cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	tn.Node = n
	asking, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asking)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if n.ownStatus().Empty {
				t.Error("a node with a log says that it is empty")
				return
			}
		}
	}()
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	c.leader()
	close(stop)
	<-asking
}

// A voter that forgot what it acknowledged must not come back under its old name.
func TestMissingLogIsRefused(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string){
		"gone": func(path string) { putTree(t, path, nil) },
		"empty": func(path string) {
			putTree(t, path, map[string]string{map[bool]string{true: walMetaName}[strings.HasSuffix(path, walName)]: ""})
		},
	} {
		_, n := oneStopped(t, false)
		lose(n.logs.path)
		t.Run(name, func(t *testing.T) {
			refuses(t, n, n.logs.path, mendsAlone)
			refuses(t, n, n.logs.path, mendsAlone) // and the refusal leaves nothing that would let it in
		})
	}
}

func TestTwoProcessesOnOneDirectory(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n := c.leader()
	refuses(t, n, n.cfg.DataDir, fmt.Sprint(os.Getpid()))
	put(t, n, "still here")
}

func TestDirectoryOfAnotherNode(t *testing.T) {
	t.Parallel()
	_, n := oneStopped(t, false)
	n.cfg.ID = "other"
	n.cfg.Members = []Member{{ID: "other", Peer: n.cfg.Members[0].Peer}}
	refuses(t, n, "other", n.cfg.DataDir)
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := change(bytes.Clone(b))
	if bytes.Equal(b, changed) {
		t.Fatal("nothing to damage was found")
	}
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A deposed leader has entries that never committed, below a snapshot that it is
// sent. Raft keeps such a log, and would send those entries to others when this
// node leads again.
func TestStaleTailBelowAnInstalledSnapshot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		stale   int  // entries that do not commit
		puts    int  // batches of the next leader
		restart bool // the stale log ends above the snapshot: raft must forget its end
	}{{"below", 12, 40, false}, {"above", 40, 3, true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := startTestCluster(t, 3)
			var old *testNode
			var from uint64
			var stale []byte                                                        // an entry that is void, if it is ever committed
			patiently(t, "a leader that is cut off to write entries", func() bool { // before it steps down
				old = c.leader()
				put(t, old, "before")
				c.converge()
				c.sever(old)
				from = old.raft.Load().LastIndex() + 1
				stale = putEntry(fsm.Turn{}, fmt.Sprint("never committed ", from))
				for range tc.stale { // unanswered: there is no majority
					old.raft.Load().Apply(stale, time.Second)
				}
				for began := time.Now(); time.Since(began) < testHeartbeat; time.Sleep(testHeartbeat / 100) {
					if old.raft.Load().LastIndex() >= from+uint64(tc.stale)-1 {
						return true
					}
				}
				c.heal()
				return false
			})
			next := c.leader(old)
			for i := range tc.puts {
				put(t, next, fmt.Sprint("key", i))
			}
			for _, n := range c.others(old) { // the old leader needs a snapshot
				eventually(t, "the entries to be everywhere", func() bool { return has(n, fmt.Sprint("key", tc.puts-1)) })
				if err := n.takeSnapshot(n.raft.Load()); err != nil {
					t.Fatal(err)
				}
				m, _ := n.snapshots().Meta()
				if err := n.cache.DeleteRange(1, m.Index); err != nil {
					t.Fatal(err)
				}
			}
			put(t, next, "last")
			c.heal()
			if tc.restart {
				eventually(t, "the node to stop", func() bool { return old.fatalReason() != nil })
				if err := old.fatalReason().Error(); !strings.Contains(err, "start the node again") {
					t.Errorf("it stopped because of: %s", err)
				}
				old.Close()
				c.start(old)
			}
			eventually(t, "the old leader to catch up", func() bool { return has(old, "last") })
			if m, ok := old.snapshots().Meta(); !ok || m.Index < from {
				t.Fatalf("it was not sent a snapshot: %+v", m)
			}
			first, _ := old.logs.FirstIndex()
			last, _ := old.logs.LastIndex()
			for i := first; i <= last; i++ {
				var l raft.Log
				if err := old.logs.read(i, &l); err != nil {
					t.Fatal(err)
				}
				if bytes.Equal(l.Data, stale) {
					t.Fatalf("entry %d of term %d is still there", i, l.Term)
				}
			}
			c.converge()
		})
	}
}

// A snapshot that arrives late, after entries above it were acknowledged, must not
// take those away.
func TestLateInstallKeepsAcknowledgedEntries(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	for i := range 10 {
		put(t, l, fmt.Sprint("key", i))
	}
	want := c.converge()
	f := c.others(l)[0]
	for _, n := range []*testNode{l, f} {
		eventually(t, "everything to be applied", func() bool { return n.FSM().Applied() >= want.Applied })
		if err := n.takeSnapshot(n.raft.Load()); err != nil {
			t.Fatal(err)
		}
	}
	metas, err := l.snapshots().List()
	if err != nil || len(metas) != 1 {
		t.Fatal(metas, err)
	}
	m, rc, err := l.snapshots().Open(metas[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(rc)
	if err = errors.Join(err, rc.Close()); err != nil {
		t.Fatal(err)
	}
	put(t, l, "acknowledged")
	eventually(t, "it to be everywhere", func() bool { return has(f, "acknowledged") })
	before, _ := f.logs.LastIndex()

	term := l.raft.Load().CurrentTerm()
	req := &raft.InstallSnapshotRequest{
		RPCHeader:       raft.RPCHeader{ProtocolVersion: 3, ID: []byte(l.raftID), Addr: []byte(l.cfg.self().Peer)},
		SnapshotVersion: 1, Term: term, LastLogIndex: m.Index, LastLogTerm: m.Term, Size: int64(len(body)),
		Configuration: raft.EncodeConfiguration(m.Configuration), ConfigurationIndex: m.ConfigurationIndex,
	}
	var resp raft.InstallSnapshotResponse
	l.trans.NetworkTransport.InstallSnapshot(f.serverID(), raft.ServerAddress(f.cfg.self().Peer), req, &resp, bytes.NewReader(body))
	if after, _ := f.logs.LastIndex(); after < before {
		t.Errorf("the log ended at %d, after a late snapshot of %d it ends at %d", before, m.Index, after)
	}
	if !has(f, "acknowledged") {
		t.Error("the state went back to the snapshot")
	}
	c.converge()
	if err := f.fatalReason(); err != nil {
		t.Error(err)
	}
}

// A first start that is killed in the middle of making its files begins anew.
func TestFirstStartThatWasKilled(t *testing.T) {
	t.Parallel()
	create := func(dir string) error {
		return errors.Join(writeStore(dir, testStore()), createLog(dir, testStore()))
	}
	for name, leave := range map[string]func(dir string){
		"with an empty log file":                 func(dir string) { write(t, logPath(dir, StoreBolt), "") },
		"in the middle of the log's first write": func(dir string) { write(t, logPath(dir, testStore())+".new", "half a page") },
		"before the log":                         func(dir string) { writeStore(dir, testStore()) },
		"before the identity": func(dir string) {
			if err := create(dir); err != nil {
				t.Fatal(err)
			}
		},
		"before the identity has its name": func(dir string) {
			if err := create(dir); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, identityFile+".tmp"), "limitd")
		},
		"before the snapshot file": func(dir string) {
			if err := create(dir); err != nil {
				t.Fatal(err)
			}
			if _, _, err := loadIdentity(dir, "n1"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, 1)
			if name == "with an empty log file" {
				c.nodes[0].cfg.LogStore = StoreBolt
			}
			leave(c.nodes[0].cfg.DataDir)
			c.start(c.nodes[0])
			put(t, c.leader(), "a")
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
