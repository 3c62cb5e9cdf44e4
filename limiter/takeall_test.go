package limiter

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"limitd/algo"
	"limitd/fsm"
)

func all(key string, t testing.TB, keysAndLimits ...string) Call {
	c := Call{Op: TakeAll, Key: []byte(key)}
	for i := 0; i < len(keysAndLimits); i += 2 {
		c.Parts = append(c.Parts, Part{Key: []byte(keysAndLimits[i]), Limit: expr(t, keysAndLimits[i+1]), Cost: 1})
	}
	return c
}

// used is what the record of a key's limit holds.
func used(l *Limiter, key string, limit algo.Limit) int64 {
	for _, p := range ask(l, Call{Op: List, Key: []byte(key)}).Parts {
		if string(p.Ident) == string(limit.Ident()) {
			return p.N
		}
	}
	return 0
}

// 16 callers of two limits at once: the tighter one lets 50 calls through, and no unit
// of the other is charged by a call that was denied.
func TestConcurrentCallersOfSeveralLimitsChargeAllOrNone(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for i := range 16 {
		wg.Go(func() {
			var c Chunk
			for range 20 {
				*c.Add() = all("k", t, "tight", "log:50/1h", "wide", "fixed:500/1h", fmt.Sprintf("own%d", i), "sliding:10/1h")
			}
			l.Do(&c)
			mu.Lock()
			defer mu.Unlock()
			for i := range c.Calls {
				if c.Calls[i].Status != OK {
					t.Errorf("status %v", c.Calls[i].Status)
				}
				if c.Calls[i].Verdict.Allowed {
					allowed++
				}
			}
		})
	}
	wg.Wait()
	tight, wide := used(l, "tight", expr(t, "log:50/1h")), used(l, "wide", expr(t, "fixed:500/1h"))
	if allowed != 50 || tight != 50 || wide != 50 {
		t.Fatalf("%d were allowed; %d and %d units are used", allowed, tight, wide)
	}
}

func TestOneLimitThatCannotBeKeptChargesNone(t *testing.T) {
	f := newFake()
	old := f.limiter(t, nil)
	ask(old, all("a", t, "a", "9/1h"))
	for name, change := range map[string]func(*Config){
		"no memory for a new record": func(c *Config) { c.MaxMemory = 1 },
		"a disk that is full":        func(c *Config) { c.DiskLow = func() bool { return true } },
	} {
		l := f.limiter(t, change)
		if c := ask(l, all("a", t, "a", "9/1h", "new", "9/1h")); c.Status != OOM {
			t.Errorf("%s: %v", name, c.Status)
		}
		if n := used(l, "a", expr(t, "9/1h")); n != int64(400*time.Second) {
			t.Errorf("%s: %d ns of debt", name, n)
		}
	}
	l := f.limiter(t, func(c *Config) { c.MaxLogEntries = 2 })
	for i, want := range []Status{OK, OK, LogFull, LogFull} {
		if c := ask(l, all("b", t, "b", "fixed:9/1h", "calls", "log:9/1h")); c.Status != want {
			t.Errorf("call %d on a log of 2: %v", i, c.Status)
		}
	}
	if n := used(l, "b", expr(t, "fixed:9/1h")); n != 2 {
		t.Errorf("%d units are used beside a log that is full", n)
	}
	if c := ask(l, Call{Op: Take, Key: []byte("calls"), Limit: expr(t, "log:9/1h"), Cost: -1}); c.Status != OK {
		t.Errorf("a refund of a log that is full: %v", c.Status)
	}
	if c := ask(l, Call{Op: Take, Key: []byte("calls"), Limit: expr(t, "log:9/1h"), Cost: 5}); c.Status != OK || c.Verdict.Remaining != 3 {
		t.Errorf("a call after it: %v %+v", c.Status, c.Verdict)
	}
}

// A node of an older version could not read an effect that cuts a state at its end. So
// the state is written as a whole, unless it is large.
func TestALargeLogGivesNothingBackWhileANodeCouldNotReadIt(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	f.version.Store(fsm.VersionCut - 1)
	const limit = "log:90000/1h"
	var c Chunk
	for range wholeState/algo.LogEntry - 1 {
		*c.Add() = one(t, "k", limit, 2)
	}
	l.Do(&c)
	c.Reset()
	*c.Add() = one(t, "k", limit, 3)
	*c.Add() = one(t, "k", limit, -1)
	*c.Add() = one(t, "k", limit, -4)
	l.Do(&c)
	left := int64(90000 - 2*(wholeState/algo.LogEntry-1))
	for i, want := range []int64{left - 3, left - 2, left + 2} {
		if got := c.Calls[i]; got.Status != OK || got.Verdict.Remaining != want {
			t.Errorf("call %d: %v, %d are left, want %d", i, got.Status, got.Verdict.Remaining, want)
		}
	}
	for range 5 {
		ask(l, one(t, "k", limit, 1))
	}
	if got := ask(l, one(t, "k", limit, -1)); got.Status != Upgrading {
		t.Errorf("a log above %d bytes: %v %+v", wholeState, got.Status, got.Verdict)
	}
	if got := ask(l, one(t, "k", limit, 1)); got.Status != OK || got.Verdict.Remaining != left-4 {
		t.Errorf("a charge of it: %v %+v", got.Status, got.Verdict)
	}
	f.version.Store(fsm.VersionCut)
	if got := ask(l, one(t, "k", limit, -2)); got.Status != OK || got.Verdict.Remaining != left-2 {
		t.Errorf("a refund when all nodes read it: %v %+v", got.Status, got.Verdict)
	}
}

// What is replicated of an admission does not grow with the log.
func TestAnAdmissionOfALargeLogIsASmallEntry(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	limit := expr(t, "log:20000/1h")
	var c Chunk
	for range 10_000 {
		*c.Add() = Call{Op: Take, Key: []byte("user:42"), Limit: limit, Cost: 1}
	}
	l.Do(&c)
	_, before := f.f.Pending()
	for range 100 {
		f.clock.Add(1e6)
		if c := ask(l, Call{Op: Take, Key: []byte("user:42"), Limit: limit, Cost: 1}); c.Status != OK || !c.Verdict.Allowed {
			t.Fatalf("%v %+v", c.Status, c.Verdict)
		}
	}
	_, after := f.f.Pending()
	if n := (after - before) / 100; n > 80 {
		t.Errorf("an admission at 10,000 entries is an entry of %d bytes", n)
	}
	if n := used(l, "user:42", limit); n != 10_100 {
		t.Errorf("%d units are used", n)
	}
}

func TestLocalDenialsOfEveryAlgorithmDoNotAllocate(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	for _, text := range []string{"1/1h", "token:1/1h", "leaky:1/1h", "fixed:1/1h", "fixed:1/day", "sliding:1/1h", "log:1/1h"} {
		limit := expr(t, text)
		ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1})
		var c Chunk
		for range 64 {
			take(&c, "k", limit, 1)
		}
		if n := testing.AllocsPerRun(100, func() { l.Do(&c) }); n != 0 {
			t.Errorf("%s: %v allocations for 64 denials", text, n)
		}
		if v := c.Calls[63].Verdict; v.Allowed || v.RetryAfter <= 0 {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

func TestExpressionsInUseAreReadOnce(t *testing.T) {
	var l Limits
	first, err := l.Parse([]byte("log:3/10m"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 * limitsKept {
		if _, err := l.Parse(fmt.Appendf(nil, "%d/1h", i+1)); err != nil {
			t.Fatal(err)
		}
		if again, _ := l.Parse([]byte("log:3/10m")); again != first {
			t.Fatalf("after %d others it was read again", i)
		}
	}
	if n := len(l.young) + len(l.old); n > 2*limitsKept {
		t.Errorf("%d are kept", n)
	}
	if n := testing.AllocsPerRun(100, func() { l.Parse([]byte("log:3/10m")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if _, err := l.Parse(make([]byte, 1<<20)); err == nil || len(err.Error()) > 1000 {
		t.Errorf("a megabyte of zeros: %.100v", err)
	}
}
