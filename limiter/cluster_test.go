package limiter

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/algo"
	"limitd/fsm"
)

// fakeCluster is a cluster of one state machine whose time, leadership and
// outcomes a test moves by hand.
type fakeCluster struct {
	f       *fsm.FSM
	turn    sync.Mutex
	index   uint64
	clock   atomic.Int64
	leading atomic.Bool
	touch   atomic.Bool
	batches atomic.Int64
	version atomic.Int32 // of the entries that all members read
	forward func(payload []byte, timeout time.Duration) ([]byte, fsm.Outcome)
	await   func(time.Duration) bool
	// commit, if set, decides the fate of an entry; apply applies it.
	commit func(apply func() uint64) (uint64, fsm.Outcome)
}

const testStart = int64(1_700_000_000_000_000_000)

func newFake() *fakeCluster {
	c := &fakeCluster{f: fsm.New(nil)}
	c.leading.Store(true)
	c.version.Store(fsm.VersionCut)
	c.touch.Store(true)
	c.clock.Store(testStart)
	c.forward = func([]byte, time.Duration) ([]byte, fsm.Outcome) { return nil, fsm.Refused }
	c.await = func(time.Duration) bool { return false }
	return c
}

func (c *fakeCluster) Begin() (fsm.Turn, error) {
	c.turn.Lock()
	if !c.leading.Load() {
		c.turn.Unlock()
		return fsm.Turn{}, errors.New("not the leader")
	}
	return fsm.Turn{Base: c.f.State().Last, Term: 1, At: c.clock.Load(), Version: uint8(c.version.Load())}, nil
}

func (c *fakeCluster) Commit(entry []byte) (uint64, fsm.Outcome) {
	defer c.turn.Unlock()
	c.batches.Add(1)
	apply := func() uint64 {
		c.index++
		if r := c.f.Apply(&raft.Log{Index: c.index, Term: 1, Data: entry}).(fsm.Result); r.Err != nil || r.Outcome != fsm.Applied {
			panic(r)
		}
		return c.index
	}
	if c.commit != nil {
		return c.commit(apply)
	}
	return apply(), fsm.Applied
}

func (c *fakeCluster) Abort()                           { c.turn.Unlock() }
func (c *fakeCluster) Leading() bool                    { return c.leading.Load() }
func (c *fakeCluster) Touch() (int64, bool)             { return c.clock.Load(), c.touch.Load() }
func (c *fakeCluster) AwaitLeader(d time.Duration) bool { return c.await(d) }
func (c *fakeCluster) Forward(p []byte, d time.Duration) ([]byte, fsm.Outcome) {
	return c.forward(p, d)
}

func (c *fakeCluster) limiter(t testing.TB, change func(*Config)) *Limiter {
	cfg := patientConfig()
	if change != nil {
		change(&cfg)
	}
	l := New(cfg, c.f, c, c)
	t.Cleanup(l.Close)
	return l
}

// patientConfig is for tests of which none is about time: a machine with much else to
// do must not end a call.
func patientConfig() Config {
	cfg := DefaultConfig()
	cfg.RequestTimeout, cfg.LeaderWait = time.Minute, 30*time.Second
	return cfg
}

func throttle(t testing.TB, maxBurst, count, period int64) algo.Limit {
	l, err := algo.NewThrottle(maxBurst, count, period)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(c *Chunk, key string, limit algo.Limit, cost int64) {
	*c.Add() = Call{Op: Take, Key: []byte(key), Limit: limit, Cost: cost}
}

// ask answers one call.
func ask(l *Limiter, call Call) Call {
	var c Chunk
	*c.Add() = call
	l.Do(&c)
	return c.Calls[0]
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}

func tatBytes(tat int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(tat)) }
