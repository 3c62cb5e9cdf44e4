package limiter

import (
	"bytes"
	"fmt"
	"math"
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
	records map[string]int64 // namespace and key: tat
}

func (s *sequential) live(ns uint8, key []byte) bool { return s.records[name(ns, key)] > s.now }

func name(ns uint8, key []byte) string { return string(rune(ns)) + string(key) }

func (s *sequential) do(c Call) Call {
	switch c.Op {
	case Take:
		var state []byte
		if s.live(c.NS, c.Key) {
			state = tatBytes(s.records[name(c.NS, c.Key)])
		}
		v, e := c.Limit.Decide(state, s.now, 0, c.Cost, nil)
		c.Verdict = v
		if e.Op == algo.Replace {
			s.records[name(c.NS, c.Key)] = e.Expiry
		}
	case Reset, Exists, Type, TTL:
		longest := int64(0)
		c.keys(func(k []byte) {
			if s.live(c.NS, k) {
				c.N++
				longest = max(longest, s.records[name(c.NS, k)]-s.now)
			}
			if c.Op == Reset {
				delete(s.records, name(c.NS, k))
			}
		})
		if c.Op == TTL {
			c.N = ttl(longest)
		}
	case Flush, FlushAll:
		for k := range s.records {
			if c.Op == FlushAll || []rune(k)[0] == rune(c.NS) {
				delete(s.records, k)
			}
		}
	}
	return c
}

func tatBytes(tat int64) []byte {
	var b [8]byte
	for i := range b {
		b[i] = byte(tat >> (8 * i))
	}
	return b[:]
}

func drawCall(t *rapid.T) Call {
	key := func() []byte { return []byte(rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "key")) }
	c := Call{NS: uint8(rapid.IntRange(0, 2).Draw(t, "ns")), Key: key()}
	c.Op = rapid.SampledFrom([]Op{Take, Take, Take, Take, Take, Take, Reset, Exists, Type, TTL, Flush, FlushAll}).Draw(t, "op")
	switch c.Op {
	case Take:
		l, err := algo.NewThrottle(int64(rapid.IntRange(0, 9).Draw(t, "burst")), int64(rapid.IntRange(1, 5).Draw(t, "count")), 3)
		if err != nil {
			t.Fatal(err)
		}
		c.Limit, c.Cost = l, int64(rapid.IntRange(-3, 12).Draw(t, "cost"))
	case Reset, Exists:
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			c.More = append(c.More, key())
		}
	}
	return c
}

// Rounds, coalescing, local denials and forwarding must not show: every chunk is
// answered as if its calls were decided one by one.
func TestAnswersAreThoseOfOneCallAtATime(t *testing.T) {
	for _, node := range []string{"leader", "leader out of touch", "follower"} {
		t.Run(node, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				leader := newFake()
				l := New(DefaultConfig(), leader.f, leader, leader)
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
					asked = New(DefaultConfig(), follower.f, follower, follower)
					defer asked.Close()
					leader.clock.Store(testStart)
				}
				model := &sequential{now: testStart, records: map[string]int64{}}
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
						*c.Add() = call
					}
					asked.Do(&c)
					for i, w := range want {
						g := c.Calls[i]
						if g.Status != OK || g.Verdict != w.Verdict || g.N != w.N {
							t.Fatalf("call %d %+v:\n got %v %+v n=%d\nwant %+v n=%d", i, w, g.Status, g.Verdict, g.N, w.Verdict, w.N)
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
