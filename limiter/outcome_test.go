package limiter

import (
	"sync/atomic"
	"testing"
	"time"

	"limitd/fsm"
)

func short(c *Config) { c.RequestTimeout, c.LeaderWait = 100*time.Millisecond, 30*time.Millisecond }

func TestARefusedOrVoidBatchIsDecidedAgain(t *testing.T) {
	for _, o := range []fsm.Outcome{fsm.Refused, fsm.Void} {
		f := newFake()
		tries := 0
		f.commit = func(apply func() uint64) (uint64, fsm.Outcome) {
			if tries++; tries < 3 {
				return 0, o
			}
			return apply(), fsm.Applied
		}
		l := f.limiter(t, nil)
		c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: throttle(t, 9, 1, 60), Cost: 1})
		if c.Status != OK || c.Verdict.Remaining != 9 || tries != 3 {
			t.Fatalf("outcome %v: %v %+v after %d tries", o, c.Status, c.Verdict, tries)
		}
	}
}

func TestAnUnknownOutcomeIsInDoubtOnlyForWhatWasProposed(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	limit := throttle(t, 0, 1, 60)
	ask(l, Call{Op: Take, Key: []byte("full"), Limit: limit, Cost: 1})
	proposals := 0
	f.commit = func(func() uint64) (uint64, fsm.Outcome) { proposals++; return 0, fsm.Unknown }
	var c Chunk
	take(&c, "fresh", limit, 1)
	take(&c, "full", limit, 1)
	take(&c, "fresh", limit, 1)
	*c.Add() = Call{Op: Reset, Key: []byte("x")}
	*c.Add() = Call{Op: TTL, Key: []byte("full")}
	l.Do(&c)
	want := []Status{InDoubt, TryAgain, TryAgain, InDoubt, TryAgain}
	for i, w := range want {
		if c.Calls[i].Status != w {
			t.Errorf("call %d: %v, want %v", i, c.Calls[i].Status, w)
		}
	}
	if proposals != 1 {
		t.Fatalf("proposed %d times", proposals)
	}
}

func TestAStuckBatchIsAnsweredAtTheDeadline(t *testing.T) {
	f := newFake()
	l := f.limiter(t, short)
	limit := throttle(t, 9, 1, 60)
	release, entered := make(chan struct{}), make(chan struct{}, 1)
	f.commit = func(apply func() uint64) (uint64, fsm.Outcome) {
		entered <- struct{}{}
		<-release
		return apply(), fsm.Applied
	}
	first := make(chan Call, 1)
	go func() { first <- ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}) }()
	<-entered
	begun := time.Now()
	second := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1})
	if second.Status != TryAgain {
		t.Errorf("queued behind a stuck batch: %v, want TryAgain", second.Status)
	}
	if c := <-first; c.Status != InDoubt {
		t.Errorf("in the stuck batch: %v, want InDoubt", c.Status)
	}
	if d := time.Since(begun); d > 2*time.Second {
		t.Errorf("answered after %v", d)
	}
	f.commit = nil
	close(release) // the entry is applied late
	eventually(t, "the late batch is applied", func() bool { return f.f.Applied() == 1 })
	// The chunk's memory is used again while the late round finishes.
	if c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}); c.Status != OK || c.Verdict.Remaining != 8 {
		t.Fatalf("after the late batch: %v %+v", c.Status, c.Verdict)
	}
}

// A leader whose disk hangs has a batch that does not end, and somebody else leads soon.
func TestWhatWaitsBehindAStuckBatchGoesToTheNextLeader(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	limit := throttle(t, 9, 1, 60)
	release, entered := make(chan struct{}), make(chan struct{}, 1)
	f.commit = func(func() uint64) (uint64, fsm.Outcome) {
		entered <- struct{}{}
		<-release
		return 0, fsm.Unknown
	}
	defer close(release)
	go ask(l, Call{Op: Take, Key: []byte("stuck"), Limit: limit, Cost: 1})
	<-entered
	forwarded := make(chan struct{}, 1)
	f.forward = func([]byte, time.Duration) ([]byte, fsm.Outcome) {
		forwarded <- struct{}{}
		return nil, fsm.Unknown
	}
	waits, refused := make(chan Call, 1), make(chan []byte, 1)
	go func() { waits <- ask(l, Call{Op: Take, Key: []byte("waits"), Limit: limit, Cost: 1}) }()
	eventually(t, "a call waits", func() bool { return l.q.len() == 1 })
	l.Serve(appendRequest(nil, []Call{{Op: Take, Key: []byte("remote"), Limit: limit, Cost: 1}}), time.Minute, func(reply []byte) { refused <- reply })
	eventually(t, "another node's call waits", func() bool { return l.q.len() == 2 })
	f.leading.Store(false)
	select {
	case <-forwarded:
	case c := <-waits:
		t.Fatalf("the call that waited here was answered %v and sent to nobody", c.Status)
	}
	if reply := <-refused; reply != nil {
		t.Fatalf("the call that another node sent was answered: %x", reply)
	}
}

func TestNoLeaderIsSaidAfterLeaderWait(t *testing.T) {
	f := newFake()
	f.leading.Store(false)
	f.touch.Store(false)
	l := f.limiter(t, func(c *Config) { *c = DefaultConfig() })
	for name, await := range map[string]func(time.Duration) bool{
		"unknown":     func(d time.Duration) bool { time.Sleep(d); return false },
		"unreachable": func(time.Duration) bool { return true },
	} {
		f.await = await
		begun := time.Now()
		c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: throttle(t, 9, 1, 60), Cost: 1})
		if d := time.Since(begun); c.Status != ClusterDown || d < 150*time.Millisecond || d > 900*time.Millisecond {
			t.Errorf("%s: %v after %v, want ClusterDown after about 200 ms", name, c.Status, d)
		}
	}
}

func TestALeaderLostJustBeforeTheDeadlineDoesNotAddLeaderWait(t *testing.T) {
	f := newFake()
	f.touch.Store(false)
	f.await = func(d time.Duration) bool { time.Sleep(d); return false }
	l := f.limiter(t, func(c *Config) { c.RequestTimeout, c.LeaderWait = 300*time.Millisecond, 10*time.Second })
	f.commit = func(func() uint64) (uint64, fsm.Outcome) { // refused late, and then nobody leads
		time.Sleep(200 * time.Millisecond)
		f.leading.Store(false)
		return 0, fsm.Refused
	}
	begun := time.Now()
	c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: throttle(t, 9, 1, 60), Cost: 1})
	if d := time.Since(begun); c.Status == OK || c.Status == InDoubt || d > 2*time.Second {
		t.Fatalf("%v after %v, with a request timeout of 300 ms", c.Status, d)
	}
}

func TestCloseTellsTheRoundInFlightAtItsDeadline(t *testing.T) {
	f := newFake()
	l := New(Config{RequestTimeout: 50 * time.Millisecond, LeaderWait: time.Millisecond, MaxQueue: 10, MaxQueueBytes: 1 << 20}, f.f, f, f)
	release, entered := make(chan struct{}), make(chan struct{}, 1)
	f.commit = func(apply func() uint64) (uint64, fsm.Outcome) {
		entered <- struct{}{}
		<-release
		return apply(), fsm.Applied
	}
	answered := make(chan Status, 1)
	go func() {
		answered <- ask(l, Call{Op: Take, Key: []byte("k"), Limit: throttle(t, 9, 1, 60), Cost: 1}).Status
	}()
	<-entered
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	select {
	case s := <-answered:
		if s != InDoubt {
			t.Errorf("%v, want InDoubt", s)
		}
	case <-time.After(5 * time.Second):
		t.Error("Close left the caller of a stuck batch waiting")
	}
	close(release)
	<-closed
}

func TestABrokenForwardIsInDoubtAndNeverSentAgain(t *testing.T) {
	f := newFake()
	f.leading.Store(false)
	f.touch.Store(false)
	var sent atomic.Int32
	f.forward = func([]byte, time.Duration) ([]byte, fsm.Outcome) { sent.Add(1); return nil, fsm.Unknown }
	l := f.limiter(t, nil)
	var c Chunk
	limit := throttle(t, 9, 1, 60)
	take(&c, "k", limit, 1)
	take(&c, "k", limit, 0)
	*c.Add() = Call{Op: TTL, Key: []byte("k")}
	l.Do(&c)
	for i, w := range []Status{InDoubt, TryAgain, TryAgain} {
		if c.Calls[i].Status != w {
			t.Errorf("call %d: %v, want %v", i, c.Calls[i].Status, w)
		}
	}
	if sent.Load() != 1 {
		t.Fatalf("sent %d times", sent.Load())
	}
}

func TestANodeThatIsNoLeaderSaysSoAndTheOriginTriesAgain(t *testing.T) {
	old, leader := newFake(), newFake()
	old.leading.Store(false)
	lo, ll := old.limiter(t, nil), leader.limiter(t, nil)
	f := newFake()
	f.leading.Store(false)
	f.touch.Store(false)
	f.await = func(time.Duration) bool { return true }
	var tries atomic.Int32
	f.forward = func(p []byte, d time.Duration) ([]byte, fsm.Outcome) {
		to := ll
		if tries.Add(1) < 3 {
			to = lo
		}
		got := make(chan []byte, 1)
		to.Serve(p, d, func(b []byte) { got <- b })
		if b := <-got; b != nil {
			return b, fsm.Applied
		}
		return nil, fsm.Refused
	}
	l := f.limiter(t, nil)
	c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: throttle(t, 9, 1, 60), Cost: 1})
	if c.Status != OK || c.Verdict.Remaining != 9 || tries.Load() != 3 {
		t.Fatalf("%v %+v after %d tries", c.Status, c.Verdict, tries.Load())
	}
}

func TestAFullQueueIsBusy(t *testing.T) {
	f := newFake()
	l := f.limiter(t, func(c *Config) { short(c); c.MaxQueue = 2 })
	release, entered := make(chan struct{}), make(chan struct{}, 8)
	f.commit = func(apply func() uint64) (uint64, fsm.Outcome) {
		entered <- struct{}{}
		<-release
		return apply(), fsm.Applied
	}
	limit := throttle(t, 9, 1, 60)
	done := make(chan Status, 2)
	one := func() { done <- ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}).Status }
	go one()
	<-entered
	go one()
	eventually(t, "one task waits", func() bool { return l.q.len() == 1 })
	var c Chunk
	take(&c, "k", limit, 1)
	take(&c, "k", limit, 1)
	l.Do(&c)
	if c.Calls[0].Status != Busy || c.Calls[1].Status != Busy {
		t.Errorf("%v %v, want Busy", c.Calls[0].Status, c.Calls[1].Status)
	}
	close(release)
	for range 2 {
		if s := <-done; s != OK {
			t.Errorf("a waiting call: %v", s)
		}
	}
}

func TestANodeThatIsLoadingSaysSoAndAsksNobody(t *testing.T) {
	f := newFake()
	var loading atomic.Bool
	loading.Store(true)
	l := f.limiter(t, func(c *Config) { c.Loading = loading.Load })
	limit := throttle(t, 9, 1, 60)
	for _, leading := range []bool{true, false} {
		f.leading.Store(leading)
		f.forward = func([]byte, time.Duration) ([]byte, fsm.Outcome) { t.Error("forwarded"); return nil, fsm.Refused }
		if c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}); c.Status != Loading {
			t.Errorf("leading %v: %v, want Loading", leading, c.Status)
		}
	}
	if n := f.batches.Load(); n != 0 {
		t.Errorf("%d batches were proposed", n)
	}
	loading.Store(false)
	f.leading.Store(true)
	if c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}); c.Status != OK || c.Verdict.Remaining != 9 {
		t.Errorf("loaded: %v %+v", c.Status, c.Verdict)
	}
}

func TestCloseAnswersWhatWaits(t *testing.T) {
	f := newFake()
	l := New(DefaultConfig(), f.f, f, f)
	release, entered := make(chan struct{}), make(chan struct{}, 1)
	f.commit = func(apply func() uint64) (uint64, fsm.Outcome) {
		entered <- struct{}{}
		<-release
		return apply(), fsm.Applied
	}
	limit := throttle(t, 9, 1, 60)
	done := make(chan Status, 2)
	one := func() { done <- ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}).Status }
	go one()
	<-entered
	go one()
	eventually(t, "one task waits", func() bool { return l.q.len() == 1 })
	f.leading.Store(false)
	close(release)
	l.Close()
	got := map[Status]int{}
	for range 2 {
		got[<-done]++
	}
	if got[OK] != 1 || got[TryAgain]+got[ClusterDown] != 1 {
		t.Fatalf("%v", got)
	}
	if c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}); c.Status != ClusterDown {
		t.Fatalf("after Close: %v", c.Status)
	}
}

// A follower's own denials.
func TestAFollowerDeniesAloneOnlyWhenItMay(t *testing.T) {
	limit := throttle(t, 0, 1, 60)
	for _, c := range []struct {
		name  string
		set   func(*fakeCluster, *Limiter)
		cost  int64
		local bool
	}{
		{"in touch", func(*fakeCluster, *Limiter) {}, 1, true},
		{"more than the capacity", func(*fakeCluster, *Limiter) {}, 2, true},
		{"out of touch", func(f *fakeCluster, _ *Limiter) { f.touch.Store(false) }, 1, false},
		{"19 ms to wait", func(f *fakeCluster, _ *Limiter) { f.clock.Add(60e9 - 19e6) }, 1, false},
		{"20 ms to wait", func(f *fakeCluster, _ *Limiter) { f.clock.Add(60e9 - 20e6) }, 1, true},
		{"it freed and has not applied that", func(_ *fakeCluster, l *Limiter) { l.raiseFence(2) }, 1, false},
		{"it freed and has applied that", func(_ *fakeCluster, l *Limiter) { l.raiseFence(1) }, 1, true},
		{"a peek", func(*fakeCluster, *Limiter) {}, 0, false},
		{"a refund", func(*fakeCluster, *Limiter) {}, -1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			l := f.limiter(t, nil)
			if !ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}).Verdict.Allowed {
				t.Fatal("seed denied")
			}
			f.leading.Store(false)
			forwarded := false
			f.forward = func([]byte, time.Duration) ([]byte, fsm.Outcome) { forwarded = true; return nil, fsm.Unknown }
			c.set(f, l)
			got := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: c.cost})
			if forwarded == c.local {
				t.Fatalf("local=%v, want %v: %v %+v", !forwarded, c.local, got.Status, got.Verdict)
			}
			if c.local && (got.Status != OK || got.Verdict.Allowed) {
				t.Fatalf("%v %+v", got.Status, got.Verdict)
			}
		})
	}
}

func TestAForwardedResetRaisesTheFence(t *testing.T) {
	leader := newFake()
	ll := leader.limiter(t, nil)
	f := newFake() // its own state machine: it applies nothing
	f.leading.Store(false)
	f.forward = func(p []byte, d time.Duration) ([]byte, fsm.Outcome) {
		got := make(chan []byte, 1)
		ll.Serve(p, d, func(b []byte) { got <- b })
		return <-got, fsm.Applied
	}
	l := f.limiter(t, nil)
	if c := ask(l, Call{Op: Reset, Key: []byte("k")}); c.Status != OK {
		t.Fatal(c.Status)
	}
	if l.fence.Load() != leader.f.Applied() || l.fence.Load() == 0 {
		t.Fatalf("fence %d, the reset is at %d", l.fence.Load(), leader.f.Applied())
	}
}
