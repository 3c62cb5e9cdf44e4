// Package model is the limiter as its rules describe it, for checkers: what a call
// on a key must be answered, and what it leaves behind. It is written for
// certainty and not for speed, in integers without bounds, and shares nothing
// with the limiter that it judges.
//
// # Buckets: CL.THROTTLE key max_burst count period [quantity], gcra, token, leaky
//
//	T     = period / count in ns, the emission interval: rounded down for CL.THROTTLE, up for the others
//	limit = max_burst + 1; the burst, or the count; the queue + 1
//	tau   = T * limit
//	tat   the only state: when the bucket is full again; none if that has passed
//	debt  = max(tat, now) - now
//
//	quantity > 0: denied if debt + T*quantity > tau (equal is allowed), else tat' = max(tat, now) + T*quantity
//	quantity = 0: a peek, denied if debt > tau; nothing is stored
//	quantity < 0: a refund, allowed: debt' = max(0, debt - T*|quantity|)
//
// A denied call stores nothing. The answer describes the state after the call:
// remaining = floor((tau - debt')/T), from 0 to limit; reset = debt'; and of a
// denial retry = debt + T*quantity - tau, or [Never] if quantity > limit. A leaky
// bucket names the debt before an allowed call as its delay.
//
// # Counters: fixed, sliding, log (counter.go), many limits at once and IDs (decide.go, id.go)
package model

import "math/big"

// Never is the wait of a call that can never pass.
const Never = -1

// State of a record; the zero value: none.
type State struct {
	tat  *big.Int // of a bucket, ns of cluster time
	kept []kept   // of a counter, oldest first; never modified
}

// kept are units that a counter holds: of a log those that were admitted at a time, of a
// sliding counter those of the window that begins then, of a fixed one those of the
// window that ends then.
type kept struct{ at, units int64 }

// At is the state of a bucket with this tat.
func At(tat int64) State { return State{tat: big.NewInt(tat)} }

// Call is one call on a bucket, its limit as an interval (ns for one unit) and a burst
// (units).
type Call struct{ Interval, Burst, Cost int64 }

// Answer to a call: exact, times in ns.
type Answer struct {
	Allowed   bool
	Remaining int64
	Retry     int64 // 0 if allowed
	Reset     int64
	Delay     int64 // leaky
}

// Interval of a limit of count units in period seconds, ns; 0 if there is none.
func Interval(count, period int64) int64 {
	if count < 1 {
		return 0
	}
	t := new(big.Int).Mul(big.NewInt(period), big.NewInt(1e9))
	t.Quo(t, big.NewInt(count))
	if !t.IsInt64() || t.Sign() < 0 {
		return 0
	}
	return t.Int64()
}

// Debt is what a bucket lacks at now, in ns: how long until it is full.
func (s State) Debt(now int64) int64 {
	if s.tat == nil {
		return 0
	}
	return clamp(s.debt(now))
}

func (s State) debt(now int64) *big.Int {
	d := new(big.Int)
	if s.tat != nil {
		d.Sub(s.tat, big.NewInt(now))
		if d.Sign() < 0 {
			d.SetInt64(0)
		}
	}
	return d
}

// Take answers a call on a bucket at now, and returns the state that it leaves.
func (s State) Take(now int64, c Call) (Answer, State) {
	interval, cost := big.NewInt(c.Interval), big.NewInt(c.Cost)
	tau := new(big.Int).Mul(interval, big.NewInt(c.Burst))
	debt := s.debt(now)
	after := new(big.Int).Mul(interval, cost)
	after.Add(after, debt)

	a := Answer{Allowed: true}
	switch {
	case c.Cost < 0:
		if after.Sign() < 0 {
			after.SetInt64(0)
		}
	case after.Cmp(tau) > 0:
		a.Allowed = false
		a.Retry = Never
		if c.Cost <= c.Burst {
			a.Retry = clamp(new(big.Int).Sub(after, tau))
		}
		after = debt
	}
	left := new(big.Int).Sub(tau, after)
	if left.Sign() > 0 {
		a.Remaining = clamp(left.Quo(left, interval))
	}
	a.Reset = clamp(after)
	if !a.Allowed || c.Cost == 0 {
		return a, s
	}
	return a, State{tat: after.Add(after, big.NewInt(now))}
}

// Reply is the answer as CL.THROTTLE gives it: limited, limit, remaining,
// retry_after, reset_after, the times in whole seconds, rounded up.
func (a Answer) Reply(limit int64) [5]int64 {
	if a.Allowed {
		return [5]int64{0, limit, a.Remaining, -1, Ceil(a.Reset, 1e9)}
	}
	retry := int64(-1)
	if a.Retry != Never {
		retry = Ceil(a.Retry, 1e9)
	}
	return [5]int64{1, limit, a.Remaining, retry, Ceil(a.Reset, 1e9)}
}

// Ceil is n/unit, rounded up; n is not negative.
func Ceil(n, unit int64) int64 {
	q := n / unit
	if n%unit != 0 {
		q++
	}
	return q
}

// clamp is the number as an int64, the nearest one that there is.
func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return -1 << 63
	}
	return 1<<63 - 1
}
