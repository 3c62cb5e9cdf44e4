package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// installCluster is three nodes that keep as little of the log behind a snapshot as
// they ever do, and hold a state of some MiB.
func installCluster(t *testing.T) *testCluster {
	t.Helper()
	c := startTestCluster(t, 3, func(cfg *Config) {
		cfg.TrailingBytes = 1
		cfg.Heartbeat, cfg.Election, cfg.Lease = worldHeartbeat, worldHeartbeat, worldHeartbeat
	})
	for batch := range 20 {
		patiently(t, "a batch of the state", func() bool { return c.tryBatch(c.leader(), batch) })
	}
	for _, n := range c.nodes {
		patiently(t, n.cfg.ID+" to keep only the floor", func() bool {
			return n.raft.Load() != nil && n.raft.Load().ReloadableConfig().TrailingLogs == minTrailing
		})
	}
	return c
}

// tryBatch commits 100 KB in records of their own.
func (c *testCluster) tryBatch(n *testNode, batch int) bool {
	turn, err := n.Begin()
	if err != nil {
		return false
	}
	effects := make([]fsm.Effect, 250)
	for i := range effects {
		effects[i] = fsm.Effect{
			Op: fsm.OpReplace, Key: fmt.Appendf(nil, "state %d %d", batch, i), Ident: []byte{1},
			State: bytes.Repeat([]byte("x"), 400), Expiry: turn.At + int64(time.Hour),
		}
	}
	_, o := n.Commit(fsm.AppendEntry(nil, turn, effects))
	return o == fsm.Applied
}

// patiently is eventually for what waits for several others: a follower that was cut
// off is tried again after as long as it was away.
func patiently(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * testPatience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", 2*testPatience, what)
		}
	}
}

// load commits batch after batch, each with a key of its own, on whoever leads.
type load struct {
	stop, over chan struct{}
	keys       []string // that took effect
}

func (c *testCluster) startLoad() *load {
	l := &load{stop: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(l.over)
		for i := 0; ; i++ {
			select {
			case <-l.stop:
				return
			default:
			}
			key := fmt.Sprint("load", i)
			for _, n := range c.running(nil) {
				turn, err := n.Begin()
				if err != nil {
					continue
				}
				if _, o := n.Commit(putEntry(turn, key)); o == fsm.Applied {
					l.keys = append(l.keys, key)
				}
				break
			}
		}
	}()
	c.t.Cleanup(l.end)
	return l
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	<-l.over
}

// endAndCheck ends the load: all nodes hold the same then, and all that was
// acknowledged.
func (l *load) endAndCheck(c *testCluster) {
	c.t.Helper()
	l.end()
	if len(l.keys) == 0 {
		c.t.Fatal("the load got nothing through")
	}
	want := c.converge()
	for _, n := range c.nodes {
		if got := n.FSM().State(); got.Last == want.Last && got.Chain != want.Chain {
			c.t.Errorf("%s has the chain hash %x, the leader %x", n.cfg.ID, got.Chain, want.Chain)
		}
		lost := 0
		for _, key := range l.keys {
			if !has(n, key) {
				lost++
			}
		}
		if lost > 0 {
			c.t.Errorf("%s lost %d of %d batches", n.cfg.ID, lost, len(l.keys))
		}
		if err := n.fatalReason(); err != nil {
			c.t.Errorf("%s stopped: %v", n.cfg.ID, err)
		}
	}
}

// fillLog puts entries into the log of a leader that are void: decided on nothing.
func fillLog(n *testNode, count int) {
	r := n.raft.Load()
	entry := fsm.AppendEntry(nil, fsm.Turn{Term: r.CurrentTerm()}, nil)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range (count + i) / 32 {
				r.Apply(entry, time.Second).Error()
			}
		})
	}
	wg.Wait()
}

// compact fills the log with more than stays behind a snapshot, and takes one.
func compact(n *testNode) {
	fillLog(n, minTrailing+100)
	n.takeSnapshot(n.raft.Load()) // whether it did is looked at where it matters
}

// leaveBehind cuts a follower off until no other node's log reaches back to its end.
func (c *testCluster) leaveBehind(f *testNode) (end uint64) {
	c.t.Helper()
	c.sever(f)
	end, _ = f.logs.LastIndex()
	patiently(c.t, "the others to compact their logs", func() bool {
		compact(c.leader(f))
		reach := false
		for _, n := range c.others(f) {
			n.takeSnapshot(n.raft.Load())
			first, _ := n.logs.FirstIndex()
			reach = reach || first <= end+1
		}
		return !reach
	})
	return end
}

// onSend has f called when half of a snapshot has been sent, with its sender and its
// number, from 1 on.
func (c *testCluster) onSend(f func(from *testNode, count int)) {
	var count atomic.Int64
	for _, n := range c.nodes {
		slow := func(data io.Reader) io.Reader {
			i := int(count.Add(1))
			return io.MultiReader(io.LimitReader(data, 1_000_000), hook(func() { f(n, i) }), data)
		}
		n.trans.slow.Store(&slow)
	}
}

// hook is a reader of nothing that does something.
type hook func()

func (h hook) Read([]byte) (int, error) {
	h()
	return 0, io.EOF
}

func (c *testCluster) caughtUp(f *testNode, end uint64) {
	c.t.Helper()
	mark := c.leader().FSM().State().Last
	patiently(c.t, "the follower to be sent a snapshot", func() bool { m, _ := f.snapshots().Meta(); return m.Index > end })
	patiently(c.t, "the follower to catch up", func() bool { return f.FSM().State().Last >= mark })
}

func TestFollowerFarBehindCatchesUpUnderLoad(t *testing.T) {
	t.Parallel()
	c := installCluster(t)
	load := c.startLoad()
	f := c.others(c.leader())[0]
	end := c.leaveBehind(f)
	c.heal()
	c.caughtUp(f, end)
	load.endAndCheck(c)
}

// A busy leader takes snapshot after snapshot while it sends one. Were the log behind
// that one compacted, the follower would need the next one, and the next.
func TestFollowerCatchesUpThoughTheLeaderCompactsMeanwhile(t *testing.T) {
	t.Parallel()
	c := installCluster(t)
	load := c.startLoad()
	f := c.others(c.leader())[0]
	end := c.leaveBehind(f)
	c.onSend(func(from *testNode, _ int) {
		sent := from.keeps(f)
		compact(from)
		compact(from)
		if m, _ := from.snapshots().Meta(); m.Index < sent+minTrailing {
			return // it leads no more, and got nothing into its log
		}
		if first, _ := from.logs.FirstIndex(); first > sent+1 {
			t.Errorf("the log begins at %d, while a snapshot of %d is being sent", first, sent)
		}
	})
	c.heal()
	c.caughtUp(f, end)
	load.endAndCheck(c)
	l := c.leader()
	patiently(t, "the leader to keep only the floor again", func() bool {
		return l.raft.Load().ReloadableConfig().TrailingLogs == minTrailing
	})
}

// keeps is from where on the node keeps its log for a follower.
func (tn *testNode) keeps(f *testNode) uint64 {
	tn.trans.holds.mu.Lock()
	defer tn.trans.holds.mu.Unlock()
	return tn.trans.holds.of[f.serverID()].from
}

func TestFollowerThatIsStoppedInTheMiddleOfAnInstall(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testNode){
		"killed":  func(f *testNode) { f.kill() },
		"stopped": func(f *testNode) { f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := installCluster(t)
			load := c.startLoad()
			f := c.others(c.leader())[0]
			end := c.leaveBehind(f)
			middle, stopped := make(chan struct{}), make(chan struct{})
			c.onSend(func(_ *testNode, count int) {
				if count == 1 {
					close(middle)
					<-stopped
				}
			})
			c.heal()
			<-middle
			begun := time.Now()
			stop(f)
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("it took %s to stop", took)
			}
			close(stopped)
			f.mu.Lock()
			f.died = nil
			f.mu.Unlock()
			c.start(f)
			c.caughtUp(f, end)
			load.endAndCheck(c)
		})
	}
}

func TestLeaderChangesInTheMiddleOfAnInstall(t *testing.T) {
	t.Parallel()
	for name, depose := range map[string]func(c *testCluster, old, next *testNode){
		"handed over": func(c *testCluster, old, next *testNode) {
			patiently(c.t, "another leader", func() bool { return next.Leading() || old.Transfer(next.cfg.ID) == nil && next.Leading() })
		},
		"killed": func(c *testCluster, old, next *testNode) { old.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := installCluster(t)
			load := c.startLoad()
			old := c.leader()
			f, next := c.others(old)[0], c.others(old)[1]
			end := c.leaveBehind(f)
			middle, deposed := make(chan struct{}), make(chan struct{})
			c.onSend(func(_ *testNode, count int) {
				if count == 1 {
					close(middle)
					<-deposed
				}
			})
			c.heal()
			<-middle
			depose(c, old, next)
			close(deposed)
			if name == "killed" {
				c.leader(old)
				old.mu.Lock()
				old.died = nil
				old.mu.Unlock()
				c.start(old)
			}
			c.caughtUp(f, end)
			load.endAndCheck(c)
		})
	}
}

// offer sends a snapshot as a leader does, body and all.
func offer(from, to *testNode, m raft.SnapshotMeta, body []byte) error {
	req := &raft.InstallSnapshotRequest{
		RPCHeader:       raft.RPCHeader{ProtocolVersion: 3, ID: []byte(from.raftID), Addr: []byte(from.cfg.self().Peer)},
		SnapshotVersion: 1, Term: from.raft.Load().CurrentTerm(), LastLogIndex: m.Index, LastLogTerm: m.Term, Size: int64(len(body)),
		Configuration: raft.EncodeConfiguration(m.Configuration), ConfigurationIndex: m.ConfigurationIndex,
	}
	var resp raft.InstallSnapshotResponse
	err := from.trans.NetworkTransport.InstallSnapshot(to.serverID(), raft.ServerAddress(to.cfg.self().Peer), req, &resp, bytes.NewReader(body))
	if err == nil && !resp.Success {
		err = errors.New("refused")
	}
	return err
}

// A leader may send what the follower has, or less: raft itself would load it.
func TestSnapshotThatIsNotNewerIsNotLoaded(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	f := c.others(l)[0]
	take := func(n *testNode) raft.SnapshotMeta {
		if err := n.takeSnapshot(n.raft.Load()); err != nil {
			t.Fatal(err)
		}
		metas, err := n.snapshots().List()
		if err != nil || len(metas) != 1 {
			t.Fatal(metas, err)
		}
		return *metas[0]
	}
	body := func(n *testNode, m raft.SnapshotMeta) []byte {
		_, rc, err := n.snapshots().Open(m.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		b, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	put(t, l, "first")
	older := take(l)
	olderBody := body(l, older)
	put(t, l, "second")
	want := c.converge()
	eventually(t, "it to be applied", func() bool { return f.FSM().Applied() >= want.Applied })
	same := take(f)
	sameBody := body(f, same)
	file := func() os.FileInfo {
		st, err := os.Stat(f.snapshots().Path())
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	before, table := file(), f.FSM().Table()

	if err := offer(l, f, same, sameBody); err != nil {
		t.Errorf("what it has already was refused: %v", err)
	}
	if err := offer(l, f, older, olderBody); err == nil || !strings.Contains(err.Error(), "stale") && !strings.Contains(err.Error(), "older") {
		t.Errorf("an older snapshot: %v", err)
	}
	if !os.SameFile(before, file()) || f.FSM().Table() != table || !has(f, "second") {
		t.Error("file or state was replaced")
	}
	put(t, l, "third")
	c.converge()
	if err := f.fatalReason(); err != nil {
		t.Error(err)
	}
}

// A leader that dies in the middle of a snapshot, without a word, must not take the
// vote of the follower with it: no leader could be elected.
func TestSenderThatStallsDoesNotHoldTheVote(t *testing.T) {
	t.Parallel()
	c := installCluster(t)
	load := c.startLoad()
	old := c.leader()
	f := c.others(old)[0]
	end := c.leaveBehind(f)
	middle, over := make(chan struct{}), make(chan struct{})
	c.onSend(func(_ *testNode, count int) {
		if count == 1 {
			close(middle)
			<-over
		}
	})
	c.heal()
	<-middle
	begun := time.Now()
	c.sever(old)
	next := c.others(old)[1]
	patiently(t, "the other one to lead, by the follower's vote", func() bool {
		next.trans.campaign()
		time.Sleep(worldHeartbeat)
		return next.Leading()
	})
	if took := time.Since(begun); took >= progressTimeout && !busy() { // by then the transfer is cut off
		t.Errorf("the others elected after %s", took)
	}
	close(over)
	c.heal()
	c.caughtUp(f, end)
	load.endAndCheck(c)
}
