package main

import (
	"fmt"
	"math"

	"limitd/algo"
)

// record is the state of one key, as a node would keep it.
type record struct {
	state  []byte
	expiry int64
	buf    []byte
}

// decide decides a call, and keeps what it changes.
func (r *record) decide(l algo.Limit, now, cost int64) algo.Verdict {
	if now >= r.expiry {
		r.state = r.state[:0]
	}
	v, e := l.Decide(r.state, now, 0, cost, r.buf[:0])
	switch e.Op {
	case algo.Replace:
		r.state = append(r.state[:0], e.State...)
	case algo.Splice:
		r.state = append(r.state[e.Drop:len(r.state)-e.Cut], e.State...)
	}
	if e.Op != algo.None {
		r.expiry = e.Expiry
	}
	return v
}

// said is the longest of some durations, and the call that was told it.
type said struct {
	ns   int64
	call traceCall
}

func (s *said) hear(ns int64, c traceCall) {
	if ns > s.ns {
		*s = said{ns, c}
	}
}

// replay is what became of a trace so far. It does not grow with the trace.
type replay struct {
	limit       algo.Limit
	key         record
	first, last traceCall

	calls                            int64
	admitted, denied, peeks, refunds int64 // calls; an admission or denial is of 1 unit or more
	unitsIn, unitsOut, unitsBack     int64 // admitted, denied, of refunds as they were asked for
	impossible                       int64 // calls that can never pass
	wait, delay                      said
	window                           windowMax
	plot                             plot
}

func newReplay(l algo.Limit) *replay {
	return &replay{limit: l, key: record{buf: make([]byte, 0, 64)}, window: windowMax{length: windowLength(l)}}
}

// windowLength is the length of the windows in which admissions are counted: the
// period. Of calendar windows, a length that no such window is much shorter than.
func windowLength(l algo.Limit) int64 {
	if days := map[string]int64{"day": 1, "week": 7, "month": 28, "year": 365}[l.Period()]; days > 0 {
		return days * day
	}
	return l.PeriodLength()
}

// call decides the next call of the trace.
func (r *replay) call(c traceCall) (algo.Verdict, error) {
	v := r.key.decide(r.limit, c.at, c.cost)
	if r.calls == 0 {
		r.first = c
	}
	r.last = c
	r.calls++
	switch {
	case c.cost < 0:
		r.refunds++
		r.unitsBack -= c.cost
	case c.cost == 0:
		r.peeks++
	case v.Allowed:
		r.admitted++
		r.unitsIn += c.cost
		r.window.add(c, c.cost)
	default:
		r.denied++
		r.unitsOut += c.cost
	}
	if min(r.unitsIn, r.unitsOut, r.unitsBack) < 0 { // it has wrapped: one addition is at most 2^61
		return v, fmt.Errorf("the costs up to here add up to more than %d", int64(math.MaxInt64))
	}
	if v.RetryAfter == algo.Never {
		r.impossible++
	}
	r.wait.hear(v.RetryAfter, c)
	r.delay.hear(v.Delay, c)
	r.plot.add(c.at-r.first.at, max(0, c.cost), v.Allowed)
	return v, nil
}
