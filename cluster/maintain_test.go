package cluster

import (
	"encoding/binary"
	"testing"
	"time"

	"limitd/fsm"
)

// putMany commits count records in one batch, numbered from first on.
func putMany(t *testing.T, n *testNode, first, count int, life time.Duration) {
	t.Helper()
	eventually(t, "a batch of many records to take effect", func() bool { return tryMany(n, first, count, life) == fsm.Applied })
}

func tryMany(n *testNode, first, count int, life time.Duration) fsm.Outcome {
	turn, err := n.Begin()
	if err != nil {
		return fsm.Refused
	}
	effects := make([]fsm.Effect, count)
	for i := range effects {
		effects[i] = fsm.Effect{
			Op: fsm.OpReplace, Key: binary.BigEndian.AppendUint32(nil, uint32(first+i)), Ident: []byte{1},
			State: []byte{1}, Expiry: turn.At + int64(life),
		}
	}
	_, o := n.Commit(fsm.AppendEntry(nil, turn, effects))
	return o
}

func TestSnapshotIsTakenWhenManyRecordsHaveChanged(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1, func(cfg *Config) { cfg.SnapshotThreshold, cfg.SnapshotRecords = 1<<40, 50_000 })
	n := c.leader()
	const batch = 10_000
	for i := range n.cfg.SnapshotRecords / batch {
		if n.Status().SnapshotIndex != 0 {
			t.Fatal("a snapshot was taken before enough had changed")
		}
		putMany(t, n, i*batch, batch, time.Hour)
	}
	eventually(t, "a snapshot", func() bool { return n.Status().SnapshotIndex != 0 })
	eventually(t, "nothing to be dirty", func() bool { records, _ := n.FSM().Pending(); return records == 0 })
}

// Removed records of a full table take memory until a snapshot has them: new ones are refused so long.
func TestSnapshotIsTakenSoonerWhenTheTableIsNearlyFull(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1, func(cfg *Config) { cfg.SnapshotThreshold, cfg.MaxMemory = 1<<40, 8<<20 })
	n := c.leader()
	const batch = 10_000
	for i := 0; n.FSM().Table().Used() <= 6<<20; i++ {
		if n.Status().SnapshotIndex != 0 {
			t.Fatalf("a snapshot was taken at %d bytes of %d", n.FSM().Table().Used(), n.cfg.MaxMemory)
		}
		putMany(t, n, i*batch, batch, time.Hour)
	}
	eventually(t, "a snapshot", func() bool { return n.Status().SnapshotIndex != 0 })
}

func TestExpiredRecordsAreDropped(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n := c.leader()
	putMany(t, n, 0, 3*sweepSlots, time.Hour)
	putMany(t, n, 3*sweepSlots, 10, 3*time.Hour)
	n.clock.boot.Add(int64(2 * time.Hour))
	putMany(t, n, 3*sweepSlots+10, 1, time.Hour) // moves cluster time
	eventually(t, "what has expired to be gone", func() bool { return n.FSM().Table().Len(0) == 11 })
}

func TestLogBehindASnapshotStaysWithinItsBytes(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1, func(cfg *Config) { cfg.TrailingBytes = 1 })
	n := c.leader()
	if got := n.raft.Load().ReloadableConfig().TrailingLogs; got < minTrailing {
		t.Fatalf("%d entries stay, the floor is %d", got, minTrailing)
	}
	eventually(t, "raft to keep only the floor", func() bool { return n.raft.Load().ReloadableConfig().TrailingLogs == minTrailing })
}

func TestCloseInTheMiddleOfTheBootstrap(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	n := c.nodes[0]
	c.start(n)
	begun := time.Now()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := n.fatalReason(); err != nil {
		t.Errorf("a plain stop was taken for a failure: %v", err)
	}
	c.start(n)
	for _, other := range c.others(n) {
		c.start(other)
	}
	c.leader()
}

func TestStartTwice(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	if err := c.leader().Start(); err == nil {
		t.Error("a node was started twice")
	}
}

// A snapshot of millions of keys takes a minute, as it rests between its steps. Ten times that would leave a log of gigabytes.
func TestTheRestBetweenSnapshotsEnds(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 100 * time.Millisecond: 2 * time.Second, time.Second: 10 * time.Second, 40 * time.Second: time.Minute, time.Hour: time.Minute,
	} {
		if got := restBetween(took); got != want {
			t.Errorf("after one of %v: %v, want %v", took, got, want)
		}
	}
}
