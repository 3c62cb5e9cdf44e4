package limiter

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"limitd/algo"
	"limitd/fsm"
)

// sequential is the obvious limiter: one call after the other over a map.
type sequential struct {
	now     int64
	records map[recordName]recordState
}

type recordName struct {
	ns         uint8
	key, ident string
}

type recordState struct {
	state  []byte
	expiry int64
}

func (s *sequential) get(ns uint8, key, ident []byte) []byte {
	if r := s.records[recordName{ns, string(key), string(ident)}]; r.expiry > s.now {
		return r.state
	}
	return nil
}

// of is what a key holds: how many records, and how long they mean something.
func (s *sequential) of(ns uint8, key []byte) (n int, longest int64) {
	for k, r := range s.records {
		if k.ns == ns && k.key == string(key) && r.expiry > s.now {
			n++
			longest = max(longest, r.expiry-s.now)
		}
	}
	return n, longest
}

// charge decides and keeps what changes.
func (s *sequential) charge(ns uint8, key []byte, l algo.Limit, cost int64) algo.Verdict {
	state := s.get(ns, key, l.Ident())
	v, e := l.Decide(state, s.now, 0, cost, nil)
	switch e.Op {
	case algo.Splice:
		e.State = append(bytes.Clone(state[e.Drop:len(state)-e.Cut]), e.State...)
		fallthrough
	case algo.Replace:
		s.records[recordName{ns, string(key), string(l.Ident())}] = recordState{e.State, e.Expiry}
	}
	return v
}

// asked is the verdict of what is not charged.
func (s *sequential) asked(ns uint8, key []byte, l algo.Limit, cost int64) algo.Verdict {
	state := s.get(ns, key, l.Ident())
	v, _ := l.Decide(state, s.now, 0, cost, nil)
	if none, _ := l.Decide(state, s.now, 0, 0, nil); v.Allowed && cost > 0 {
		v.Remaining, v.ResetAfter = none.Remaining, none.ResetAfter
	}
	return v
}

func (s *sequential) do(c Call) Call {
	c.Parts = slices.Clone(c.Parts)
	switch c.Op {
	case Take:
		c.At = s.now
		if c.Peek {
			c.Verdict = s.asked(c.NS, c.Key, c.Limit, c.Cost)
		} else {
			c.Verdict = s.charge(c.NS, c.Key, c.Limit, c.Cost)
		}
	case TakeAll:
		c.At, c.N, c.Verdict.Allowed = s.now, -1, true
		for i := range c.Parts {
			p := &c.Parts[i]
			p.Verdict = s.asked(c.NS, p.Key, p.Limit, p.Cost)
			if wait := p.Verdict.RetryAfter; !p.Verdict.Allowed {
				c.Verdict.Allowed = false
				if longest := c.Verdict.RetryAfter; c.N < 0 || longest != algo.Never && (wait == algo.Never || wait > longest) {
					c.N, c.Verdict.RetryAfter = int64(i), wait
				}
			}
		}
		for i := range c.Parts {
			switch p := &c.Parts[i]; {
			case !c.Verdict.Allowed:
				p.Verdict.Delay = 0
			case !c.Peek:
				p.Verdict = s.charge(c.NS, p.Key, p.Limit, p.Cost)
			}
		}
	case List:
		for k, r := range s.records {
			if k.ns == c.NS && k.key == string(c.Key) && r.expiry > s.now {
				c.Parts = append(c.Parts, Part{Ident: []byte(k.ident), N: algo.Used([]byte(k.ident), r.state, s.now, 0), Verdict: algo.Verdict{ResetAfter: r.expiry - s.now}})
			}
		}
		c.sortParts()
	case Reset, Exists, Type, TTL:
		longest := int64(0)
		c.keys(func(k []byte) {
			if n, left := s.of(c.NS, k); n > 0 {
				c.N++
				longest = max(longest, left)
			}
			if c.Op == Reset {
				maps.DeleteFunc(s.records, func(n recordName, _ recordState) bool { return n.ns == c.NS && n.key == string(k) })
			}
		})
		if c.Op == TTL {
			c.N = ttl(longest)
		}
	case Flush, FlushAll:
		maps.DeleteFunc(s.records, func(n recordName, _ recordState) bool { return c.Op == FlushAll || n.ns == c.NS })
	}
	return c
}

var drawnLimits = []string{
	"3/2s", "3/2s,burst=5", "7/1s", "token:4/2s", "leaky:3/2s,queue=2", "fixed:4/3s", "fixed:6/3s", "fixed:9/day",
	"sliding:5/2s", "sliding:3/2s", "log:5/2s", "log:9/2s", "log:4/5s",
}

func drawCall(t *rapid.T) Call {
	key := func() []byte { return []byte(rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "key")) }
	limit := func() algo.Limit {
		l, err := algo.Parse(rapid.SampledFrom(drawnLimits).Draw(t, "limit"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	c := Call{NS: uint8(rapid.IntRange(0, 2).Draw(t, "ns")), Key: key()}
	c.Op = rapid.SampledFrom([]Op{Take, Take, Take, Take, TakeAll, TakeAll, TakeAll, List, Reset, Exists, Type, TTL, Flush, FlushAll}).Draw(t, "op")
	switch c.Op {
	case Take:
		c.Cost = int64(rapid.IntRange(-3, 12).Draw(t, "cost"))
		if rapid.Bool().Draw(t, "throttle") {
			l, err := algo.NewThrottle(int64(rapid.IntRange(0, 9).Draw(t, "burst")), int64(rapid.IntRange(1, 5).Draw(t, "count")), 3)
			if err != nil {
				t.Fatal(err)
			}
			c.Limit = l
			break
		}
		c.Limit = limit()
		c.Peek = c.Cost > 0 && rapid.Bool().Draw(t, "peek")
	case TakeAll:
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			c.Parts = append(c.Parts, Part{Key: key(), Limit: limit(), Cost: int64(rapid.IntRange(0, 4).Draw(t, "cost"))})
		}
		if CheckParts(c.Parts) != nil {
			c.Parts = c.Parts[:1]
		}
		c.Peek = rapid.IntRange(0, 3).Draw(t, "peek") == 0
	case Reset, Exists:
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			c.More = append(c.More, key())
		}
	}
	return c
}

// sameAnswer compares what clients see.
func sameAnswer(g, w *Call) bool {
	if g.Status != OK || g.Verdict != w.Verdict || g.N != w.N || len(g.Parts) != len(w.Parts) {
		return false
	}
	if (w.Op == TakeAll || w.Op == Take && w.Limit.Algorithm != algo.Throttle) && g.At != w.At {
		return false
	}
	for i := range w.Parts {
		if a, b := &g.Parts[i], &w.Parts[i]; a.Verdict != b.Verdict || a.N != b.N || !bytes.Equal(a.Ident, b.Ident) {
			return false
		}
	}
	return true
}

// Rounds, coalescing, local denials and forwarding must not show: every chunk is
// answered as if its calls were decided one by one.
func TestAnswersAreThoseOfOneCallAtATime(t *testing.T) {
	for _, node := range []string{"leader", "leader out of touch", "follower"} {
		t.Run(node, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				leader := newFake()
				l := New(patientConfig(), leader.f, leader, leader)
				defer l.Close()
				asked := l
				switch node {
				case "leader out of touch":
					leader.touch.Store(false)
				case "follower":
					follower := newFake()
					follower.f = leader.f // applied at once
					follower.leading.Store(false)
					follower.forward = func(p []byte, d time.Duration) ([]byte, fsm.Outcome) {
						got := make(chan []byte, 1)
						l.Serve(bytes.Clone(p), d, func(b []byte) { got <- b })
						return <-got, fsm.Applied
					}
					asked = New(patientConfig(), follower.f, follower, follower)
					defer asked.Close()
					leader.clock.Store(testStart)
				}
				model := &sequential{now: testStart, records: map[recordName]recordState{}}
				var c Chunk
				for range rapid.IntRange(1, 12).Draw(t, "chunks") {
					model.now += int64(rapid.IntRange(0, 2_000_000_000).Draw(t, "pause"))
					leader.clock.Store(model.now)
					if f, ok := asked.r.(*fakeCluster); ok {
						f.clock.Store(model.now)
					}
					c.Reset()
					var want []Call
					for range rapid.IntRange(1, 20).Draw(t, "calls") {
						call := drawCall(t)
						want = append(want, model.do(call))
						call.Parts = slices.Clone(call.Parts)
						*c.Add() = call
					}
					asked.Do(&c)
					for i, w := range want {
						g := c.Calls[i]
						if !sameAnswer(&g, &w) {
							t.Fatalf("call %d:\n got %+v\nwant %+v", i, g, w)
						}
					}
				}
			})
		})
	}
}

func TestConcurrentCallersNeverExceedTheLimit(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	limit := throttle(t, 99, 1, 86400)
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range 16 {
		wg.Go(func() {
			var c Chunk
			n := 0
			for range 10 {
				c.Reset()
				for range 10 {
					take(&c, "hot", limit, 1)
				}
				l.Do(&c)
				for i := range c.Calls {
					if c.Calls[i].Status != OK {
						t.Errorf("status %v", c.Calls[i].Status)
					}
					if c.Calls[i].Verdict.Allowed {
						n++
					}
				}
			}
			mu.Lock()
			allowed += n
			mu.Unlock()
		})
	}
	wg.Wait()
	if allowed != 100 {
		t.Fatalf("%d of 1600 calls were allowed under a limit of 100", allowed)
	}
	if s := l.Stats(); s.Allowed != 100 || s.Denied != 1500 {
		t.Fatalf("stats: %+v", s)
	}
}

func TestDenialsAndPeeksProposeNothing(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	limit := throttle(t, 0, 1, 86400)
	if !ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}).Verdict.Allowed {
		t.Fatal("the first call is denied")
	}
	before := f.batches.Load()
	for range 10 {
		for cost := int64(0); cost < 4; cost++ {
			ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: cost})
		}
		ask(l, Call{Op: TTL, Key: []byte("k")})
	}
	if n := f.batches.Load() - before; n != 0 {
		t.Fatalf("%d batches were proposed", n)
	}
	if s := l.Stats(); s.DeniedLocal != 30 {
		t.Fatalf("%d of 30 denials were local", s.DeniedLocal)
	}
}

func TestALeaderOutOfTouchProvesItsDenials(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	limit := throttle(t, 0, 1, 86400)
	ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1})
	f.touch.Store(false)
	before := f.batches.Load()
	if c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}); c.Status != OK || c.Verdict.Allowed {
		t.Fatalf("%+v", c)
	}
	if n := f.batches.Load() - before; n != 1 {
		t.Fatalf("%d batches, want an empty one that proves the leadership", n)
	}
	f.commit = func(func() uint64) (uint64, fsm.Outcome) { return 0, fsm.Unknown }
	if c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1}); c.Status != TryAgain {
		t.Fatalf("an unproved denial was answered: %v %+v", c.Status, c.Verdict)
	}
}

func TestOneHotKeyIsOneEffect(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	var c Chunk
	for range 5000 {
		take(&c, "hot", throttle(t, 9999, 1, 86400), 1)
	}
	l.Do(&c)
	_, log := f.f.Pending()
	if n := f.batches.Load(); n != 1 || log > 200 {
		t.Fatalf("5000 hits of one key: %d batches, %d bytes of log", n, log)
	}
}

func TestAChunkLargerThanARoundIsDecidedInSeveral(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	var c Chunk
	limit := throttle(t, 0, 1, 86400)
	for i := range 2000 {
		take(&c, fmt.Sprintf("%01000d", i), limit, 1)
	}
	for i := range 2000 {
		take(&c, fmt.Sprintf("%01000d", i), limit, 1)
	}
	l.Do(&c)
	for i := range c.Calls {
		if v := c.Calls[i].Verdict; c.Calls[i].Status != OK || v.Allowed != (i < 2000) {
			t.Fatalf("call %d: %v %+v", i, c.Calls[i].Status, v)
		}
	}
	if n := f.batches.Load(); n < 5 {
		t.Fatalf("2 MB of effects went into %d batches", n)
	}
}

func TestMemoryBoundRefusesNewRecordsOnly(t *testing.T) {
	f := newFake()
	limit := throttle(t, 9, 1, 86400)
	l := f.limiter(t, nil)
	ask(l, Call{Op: Take, Key: []byte("old"), Limit: limit, Cost: 1})
	full := f.limiter(t, func(c *Config) { c.MaxMemory = 1 })
	if c := ask(full, Call{Op: Take, Key: []byte("new"), Limit: limit, Cost: 1}); c.Status != OOM {
		t.Fatalf("a new record above the bound: %v", c.Status)
	}
	if c := ask(full, Call{Op: Take, Key: []byte("old"), Limit: limit, Cost: 1}); c.Status != OK || c.Verdict.Remaining != 8 {
		t.Fatalf("a live record above the bound: %v %+v", c.Status, c.Verdict)
	}
	low := f.limiter(t, func(c *Config) { c.DiskLow = func() bool { return true } })
	if c := ask(low, Call{Op: Take, Key: []byte("old"), Limit: limit, Cost: 1}); c.Status != OOM {
		t.Fatalf("a charge below the disk's floor: %v", c.Status)
	}
	if c := ask(low, Call{Op: Reset, Key: []byte("old")}); c.Status != OK || c.N != 1 {
		t.Fatalf("a reset below the disk's floor: %v %d", c.Status, c.N)
	}
}

// A refund of a full bucket leaves nothing behind: no record, whatever the bound.
func TestARefundOfAFullBucketStoresNothing(t *testing.T) {
	f := newFake()
	l := f.limiter(t, func(c *Config) { c.MaxMemory = 1 })
	limit := throttle(t, 9, 1, 60)
	for i := range 100 {
		c := ask(l, Call{Op: Take, Key: fmt.Appendf(nil, "k%d", i), Limit: limit, Cost: -1})
		if c.Status != OK || !c.Verdict.Allowed || c.Verdict.Remaining != 10 {
			t.Fatalf("%v %+v", c.Status, c.Verdict)
		}
	}
	if n := f.f.Table().Len(0); n != 0 {
		t.Fatalf("%d records", n)
	}
	one := f.limiter(t, nil)
	ask(one, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1})
	ask(one, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: -1})
	if n := f.f.Table().Len(0); n != 0 {
		t.Fatalf("%d records after a charge that was given back", n)
	}
}

func TestLocalDenialDoesNotAllocate(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	limit := throttle(t, 0, 1, 86400)
	ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1})
	var c Chunk
	for range 64 {
		take(&c, "k", limit, 1)
	}
	if n := testing.AllocsPerRun(100, func() { l.Do(&c) }); n != 0 {
		t.Fatalf("%v allocations for 64 denials", n)
	}
	if c.Calls[63].Verdict.RetryAfter != 86400*int64(time.Second) {
		t.Fatalf("%+v", c.Calls[63].Verdict)
	}
}

func BenchmarkDoAdmit(b *testing.B) {
	f := newFake()
	l := f.limiter(b, nil)
	limit := throttle(b, math.MaxInt32, 1000, 1)
	var c Chunk
	keys := make([][]byte, 1<<16)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%020d", i)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += 1024 {
		c.Reset()
		for j := range 1024 {
			*c.Add() = Call{Op: Take, Key: keys[(i*7919+j*104729)&(len(keys)-1)], Limit: limit, Cost: 1}
		}
		l.Do(&c)
	}
}

func BenchmarkDoDeny(b *testing.B) {
	f := newFake()
	l := f.limiter(b, nil)
	limit := throttle(b, 0, 1, 86400)
	var c Chunk
	for i := range 1000 {
		take(&c, fmt.Sprintf("key:%020d", i), limit, 1)
	}
	l.Do(&c)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += 1000 {
		l.Do(&c)
	}
}
