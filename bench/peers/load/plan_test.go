package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// limiter admits each key so often, and fails when it is told to.
type limiter struct {
	mu    sync.Mutex
	limit int
	asked map[string]int
	conns map[int]int
	fail  bool
}

func (l *limiter) decide(_ context.Context, conn int, key string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked[key]++; l.fail && l.asked[key] == 1 {
		return false, errors.New("it fails once a key")
	}
	l.conns[conn]++
	return l.asked[key] <= l.limit, nil
}

func (l *limiter) close() error { return nil }

func newLimiter(limit int) *limiter {
	return &limiter{limit: limit, asked: map[string]int{}, conns: map[int]int{}}
}

// So many calls are spread evenly over keys and connections, and each is counted as answered.
func TestCallsAreCountedAsAnswered(t *testing.T) {
	l := newLimiter(4)
	p := plan{clients: 8, conns: 3, keys: 10, prefix: "key", calls: 70, time: time.Second}
	r := p.run(t.Context(), l).report()
	if r.Allowed != 40 || r.Denied != 30 || r.Errors != 0 || r.Rate <= 0 {
		t.Errorf("report = %+v, want 40 allowed and 30 denied", r)
	}
	for i := range p.keys {
		if n := l.asked[p.key(i)]; n != 7 {
			t.Errorf("%s was asked for %d times, not 7", p.key(i), n)
		}
	}
	if len(p.key(0)) != 24 {
		t.Errorf("%q has %d bytes", p.key(0), len(p.key(0)))
	}
	for c := range l.conns {
		if c < 0 || c >= p.conns {
			t.Errorf("a call on connection %d of %d", c, p.conns)
		}
	}
}

// An error is no decision.
func TestErrorsAreNotInTheRate(t *testing.T) {
	l := newLimiter(2)
	l.fail = true
	p := plan{clients: 2, conns: 1, keys: 5, prefix: "key", calls: 20, time: time.Second}
	r := p.run(t.Context(), l).report()
	if r.Allowed != 5 || r.Denied != 10 || r.Errors != 5 || r.FirstError != "it fails once a key" {
		t.Errorf("report = %+v", r)
	}
}

// What is sent in the warm-up is answered and not counted.
func TestTheWarmUpIsNotCounted(t *testing.T) {
	l := newLimiter(1 << 30)
	p := plan{clients: 1, conns: 1, keys: 1, prefix: "key", warmup: 50 * time.Millisecond, time: 50 * time.Millisecond}
	r := p.run(t.Context(), l).report()
	if asked := int64(l.asked[p.key(0)]); r.Allowed == 0 || r.Allowed >= asked {
		t.Errorf("%d of %d calls are counted", r.Allowed, asked)
	}
}

func TestPlansThatMakeNoLoadAreErrors(t *testing.T) {
	good := plan{clients: 1, conns: 1, keys: 1, time: time.Second}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*plan){
		"clients": func(p *plan) { p.clients = 0 }, "conns": func(p *plan) { p.conns = 0 }, "keys": func(p *plan) { p.keys = 0 },
		"calls": func(p *plan) { p.calls = -1 }, "time": func(p *plan) { p.time = 0 },
	} {
		p := good
		if spoil(&p); p.check() == nil {
			t.Errorf("a plan with wrong %s is not refused", name)
		}
	}
}
