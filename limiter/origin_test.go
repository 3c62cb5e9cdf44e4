package limiter

import (
	"bytes"
	"testing"
	"time"

	"limitd/fsm"
)

// A call is told where it was decided, on whatever node it was made.
func TestACallIsToldWhereItWasDecided(t *testing.T) {
	leader, follower := newFake(), newFake()
	l := leader.limiter(t, func(c *Config) { c.Node = "n1" })
	follower.f = leader.f
	follower.leading.Store(false)
	follower.forward = func(p []byte, d time.Duration) ([]byte, fsm.Outcome) {
		got := make(chan []byte, 1)
		l.Serve(bytes.Clone(p), d, func(b []byte) { got <- b })
		return <-got, fsm.Applied
	}
	asked := follower.limiter(t, func(c *Config) { c.Node = "n2" })
	traced := func(c Call) Call {
		c.Traced = true
		return c
	}
	var c Chunk
	*c.Add() = traced(one(t, "k", "1/1h", 1))
	*c.Add() = traced(one(t, "k", "1/1h", 1))
	*c.Add() = traced(all("j", t, "j", "9/1h"))
	*c.Add() = one(t, "k", "1/1h", 1)
	asked.Do(&c)
	for i, want := range []Origin{{Index: 1, Term: 1, Round: 1, Node: "n1"}, {Term: 1, Round: 1, Seq: 1, Node: "n1"}, {Index: 1, Term: 1, Round: 1, Seq: 2, Node: "n1"}} {
		if got := c.Calls[i].Origin; got == nil || *got != want {
			t.Errorf("call %d: %+v, want %+v", i, got, want)
		}
	}
	if c.Calls[3].Origin != nil {
		t.Error("one that did not ask is told too")
	}
	if got := ask(asked, traced(one(t, "k", "1/1h", 1))).Origin; got == nil || *got != (Origin{Node: "n2"}) {
		t.Errorf("a denial by the node itself: %+v", got)
	}
	call := withID(traced(one(t, "i", "9/1h", 1)), "x")
	if got := ask(l, call).Origin; got == nil || got.Index != 2 || got.Base != 1 {
		t.Errorf("a charge under an ID: %+v", got)
	}
	if got := ask(asked, call); !got.Repeated || got.Origin == nil || got.Origin.Index != 0 {
		t.Errorf("and again: %+v %+v", got.Repeated, got.Origin)
	}
}
