//go:build mutant

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/mutant"
)

// choose turns a defect on until the test is over and its nodes are stopped.
func choose(t *testing.T, name string) {
	t.Cleanup(func() { mutant.Choose("") })
	mutant.Choose(name)
}

func TestDefectOfTheLogsSyncShows(t *testing.T) {
	choose(t, "nosync")
	s, _ := openTestLog(t, t.TempDir(), func(error) {})
	db, unsynced := s.file.(*boltLog).db, 0
	for i := uint64(1); i <= 64; i++ {
		mustStore(t, s, entries(i, i))
		if db.NoSync {
			unsynced++
		}
	}
	if unsynced != 62 {
		t.Errorf("%d of 64 writes were not synced, want 62", unsynced)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "segment"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close() // so a sync fails
	if err := (walFile{File: f}).Sync(); err != nil {
		t.Errorf("a segment of the wal is synced: %v", err)
	}
	mutant.Choose("")
	if err := (walFile{File: f}).Sync(); err == nil {
		t.Error("without the defect a segment is not synced either")
	}
}

func TestDefectOfALeadersTimeShows(t *testing.T) {
	choose(t, "no-clamp-of-t")
	c := startTestCluster(t, 1)
	n := c.leader()
	put(t, n, "a")
	before := n.FSM().Time()
	n.clock.wall.Add(-int64(time.Hour))
	put(t, n, "b")
	if after := n.FSM().Time(); after > before-int64(time.Minute) {
		t.Errorf("the leader's wall clock went back by an hour, cluster time by %s", time.Duration(before-after))
	}
}

func TestDefectOfAFollowersTouchShows(t *testing.T) {
	choose(t, "denial-out-of-touch")
	c := startTestCluster(t, 3)
	f := c.others(c.leader())[0]
	c.sever(f)
	f.clock.boot.Add(int64(time.Hour))
	if _, ok := f.Touch(); !ok {
		t.Error("an hour after it was cut off it answers no more")
	}
}

func TestDefectOfTransfersShows(t *testing.T) {
	choose(t, "transfer-without-guard")
	c := startTestCluster(t, 3)
	l := c.leader()
	to := c.others(l)[0]
	c.sever(to)
	l.transferred.Store(l.clock.Boot())
	if s, err := l.successor(to.cfg.ID); err != nil || s.ID != to.serverID() || l.rest() != 0 {
		t.Errorf("to %s, who is cut off, right after a transfer: %v, %v, a rest of %s", to.cfg.ID, s.ID, err, l.rest())
	}
	for range 3 {
		l.clock.boot.Add(int64(time.Minute))
		l.noteRefusal(raft.ErrLeadershipTransferInProgress)
	}
	if err := l.fatalReason(); err != nil {
		t.Errorf("it noticed that raft refuses writes: %v", err)
	}
}

// A leader that does not wait decides on a state that is about to change; the entry
// before it makes its batch void, and the other half of the defect applies it.
func TestDefectOfTheBarrierShows(t *testing.T) {
	c := startTestCluster(t, 1)
	n := c.leader()
	n.leadMu.Lock()
	n.lead.Store(nil)
	n.leadMu.Unlock()
	if _, err := n.Begin(); !errors.Is(err, errNotLeading) {
		t.Fatal(err)
	}
	choose(t, "void-batch-applied")
	n.leadAtOnce(t.Context())
	first, err := n.Begin()
	if err != nil {
		t.Fatal("it waits for its barrier: ", err)
	}
	second := putEntry(first, "second")
	if _, o := n.Commit(putEntry(first, "first")); o != fsm.Applied {
		t.Fatal(o)
	}
	if _, err := n.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, o := n.Commit(second); o != fsm.Applied || !has(n, "second") {
		t.Errorf("a batch decided on an old state is %s", o)
	}
}
