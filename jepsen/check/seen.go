package check

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
)

// seen is what can be known of a key by what clients were told: its tat lies in
// [lo, hi], ns of the run; far is a tat that has long passed, or never was.
//
// A reply says what the bucket lacks after the call (its debt) in two ways: remaining
// to the nearest unit, reset_after to the nearest second. With the time of the decision
// in [invoke, return] that narrows [lo, hi]; what leaves nothing of it is refuted:
//
//	charge allowed   tat' = max(tat, t) + T*cost, debt' = tat' - t, of the reply's range and at most tau
//	peek, EXISTS, TTL allowed   tat' = tat, debt' as told
//	refund           tat' = max(t, tat - T*n)
//	RL.LIST          the debt, to the nanosecond; nothing: none
//	DEL              1: tat > t, 0: tat <= t; tat' = far
//	in doubt         it did happen or it did not: the range holds both
//	denied           the reply must be one: debt + T*cost > tau for some debt of its range
//
// A denial may be a node's own and of a state that misses what was given back in the
// last two heartbeat timeouts; so it narrows nothing, and must only not say more debt than
// there can be, unless something was given back since then.
type seen struct{ lo, hi, freed int64 }

const far = math.MinInt64 / 4

// seenInput is an operation with the bounds of its decision's time, ns of the run.
type seenInput struct {
	*op
	from, to int64
	begin    *seen // sets the state: the window's first
	stale    int64 // two heartbeat timeouts
}

// early is how much before a call came in the leader may have read the time for it: a
// round reads it, and then takes what waits.
const early = int64(50 * time.Millisecond)

// seenOperations are a window's, behind one that sets what is known at its beginning:
// nothing but that no bucket lacks more than its capacity.
func (e *evidence) seenOperations(w window) []porcupine.Operation {
	begin := seen{far, far, w.freed}
	until := w.from
	for _, o := range w.ops {
		if !w.first && o.verb == throttle {
			begin.hi = max(begin.hi, w.from+o.call.Interval*o.call.Burst)
		}
		if o.typ == history.OK {
			until = max(until, o.to())
		}
	}
	lag := e.lag(w.from, until)
	if begin.hi != far {
		begin.hi += lag
	}
	all := []porcupine.Operation{{Input: seenInput{begin: &begin}, Call: w.from - 2, Return: w.from - 1, Metadata: (*op)(nil)}}
	for i, o := range w.ops {
		in := seenInput{op: o, from: max(o.from(), w.from) - early, to: min(o.to(), until) + lag, stale: 2 * e.run.HeartbeatNS}
		all = append(all, porcupine.Operation{ClientId: i%concurrent + 1, Input: in, Call: max(o.from(), w.from), Return: o.to(), Metadata: o})
	}
	return all
}

// lag is how much cluster time can have been lost against the run's between two moments.
func (e *evidence) lag(from, to int64) int64 {
	const unsure = int64(20 * time.Millisecond)
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for term, s := range e.clock.cluster {
		boot := e.clock.boot[e.clock.leader[term]]
		began := e.clock.began[term] - boot.lo
		next := int64(math.MaxInt64)
		for t, b := range e.clock.began {
			if t > term {
				next = min(next, b-boot.lo)
			}
		}
		if !boot.known() || s.lo == anywhere.lo || began > to || next < from-int64(2*time.Second) {
			continue
		}
		hi := s.hi
		if hi == anywhere.hi {
			hi = s.lo
		}
		least, most = min(least, boot.lo+s.lo), max(most, boot.hi+hi)
	}
	if least > most {
		return unsure
	}
	return most - least + unsure
}

var seenModel = porcupine.Model{
	Init: func() any { return seen{far, far, math.MinInt64} },
	Step: func(state, input, _ any) (bool, any) {
		in := input.(seenInput)
		if in.begin != nil {
			return true, *in.begin
		}
		s, ok := state.(seen).step(in)
		return ok, s
	},
	Hash: func(state any) uint64 {
		s := state.(seen)
		return uint64(s.lo)*0x9e3779b97f4a7c15 ^ uint64(s.hi)*0xd6e8feb86659fd93 ^ uint64(s.freed)
	},
	DescribeOperation: func(input, _ any) string {
		in := input.(seenInput)
		if in.begin != nil {
			return "begin"
		}
		return in.op.String()
	},
	DescribeState: func(state any) string {
		s := state.(seen)
		if s.hi == far {
			return "full"
		}
		return fmt.Sprintf("full between %d and %d ns of the run", max(s.lo, 0), s.hi)
	},
}

// step is what is known after the operation, if it can have been.
func (s seen) step(in seenInput) (seen, bool) {
	if in.typ != history.OK {
		return s.perhaps(in), true
	}
	c := in.call
	switch in.verb {
	case throttle:
		debt, ok := told(in.reply, c)
		switch {
		case !ok:
			return s, false
		case in.reply[0] == 1:
			return s, s.denies(in, debt)
		case c.Cost > 0:
			return s.charge(in, debt)
		case c.Cost < 0:
			return s.refund(in, debt)
		}
		return s.observe(in, debt)
	case reset:
		held := in.reply[0] == 1 && s.hi > in.from || in.reply[0] == 0 && s.lo <= in.to
		return seen{far, far, max(s.freed, in.op.to())}, held
	case exists, kind:
		if in.reply[0] == 1 {
			return s.observe(in, span{1, math.MaxInt64 / 4})
		}
		return s.observe(in, span{0, 0})
	case list:
		switch all := in.listed; {
		case len(all) == 0:
			return s.observe(in, span{0, 0})
		case len(all) == 1 && wait(all[0].Used) == all[0].Left:
			return s.observe(in, span{all[0].Used, all[0].Used})
		}
		return s, false
	case seconds, millis:
		unit := int64(1e9)
		if in.verb == millis {
			unit = 1e6
		}
		if n := in.reply[0]; n > 0 {
			return s.observe(in, span{(n-1)*unit + 1, n * unit})
		}
		return s.observe(in, span{0, 0})
	}
	return s, true
}

// told is the debt after the call by a reply of CL.THROTTLE; false: no limiter says so.
func told(reply []int64, c model.Call) (span, bool) {
	tau := c.Interval * c.Burst
	limited, limit, remaining, retry, reset := reply[0], reply[1], reply[2], reply[3], reply[4]
	if limit != c.Burst || remaining < 0 || remaining > limit || reset < 0 {
		return span{}, false
	}
	debt := span{0, math.MaxInt64 / 4}
	if reset == 0 {
		debt.hi = 0
	} else if reset < math.MaxInt64/4/int64(1e9) {
		debt.narrow((reset-1)*1e9+1, reset*1e9)
	}
	debt.lo = max(debt.lo, tau-remaining*c.Interval-c.Interval+1)
	if remaining > 0 {
		debt.hi = min(debt.hi, tau-remaining*c.Interval)
	}
	switch {
	case limited == 0:
		if retry != -1 {
			return span{}, false
		}
		if c.Cost >= 0 {
			debt.hi = min(debt.hi, tau)
		}
	case limited != 1 || c.Cost < 0 || (retry == -1) != (c.Cost > c.Burst) || retry == 0 || retry < -1:
		return span{}, false
	case retry > 0: // debt + T*cost - tau = the wait
		debt.narrow((retry-1)*1e9+1+tau-c.Interval*c.Cost, retry*1e9+tau-c.Interval*c.Cost)
	}
	return debt, debt.lo <= debt.hi
}

// denies: the debt is not more than there can be.
func (s seen) denies(in seenInput, debt span) bool {
	if s.freed >= in.op.from()-in.stale {
		return true
	}
	return debt.lo == 0 || s.hi >= in.from-in.stale+debt.lo
}

// charge: the debt before was the debt after, less the charge.
func (s seen) charge(in seenInput, debt span) (seen, bool) {
	price := in.call.Interval * in.call.Cost
	before := span{max(0, debt.lo-price), debt.hi - price}
	if before.hi < 0 {
		return s, false
	}
	next := span{max(s.lo, in.from+before.lo), min(s.hi, in.to+before.hi)}
	if before.lo == 0 { // the bucket may have been full
		next = join(next, span{max(in.from, s.lo), in.to})
	}
	return seen{next.lo + price, next.hi + price, s.freed}, next.lo <= next.hi
}

// refund: the debt before was the debt after and the units, or less if it is now full.
func (s seen) refund(in seenInput, debt span) (seen, bool) {
	back := -in.call.Interval * in.call.Cost
	next := span{max(s.lo, in.from+back+debt.lo) - back, min(s.hi, in.to+back+debt.hi) - back}
	if debt.lo == 0 {
		next = join(next, span{max(in.from, s.lo-back), in.to})
	}
	return seen{next.lo, next.hi, max(s.freed, in.op.to())}, next.lo <= next.hi
}

// observe: the debt is told, and nothing changes.
func (s seen) observe(in seenInput, debt span) (seen, bool) {
	next := span{max(s.lo, in.from+debt.lo), min(s.hi, in.to+debt.hi)}
	if debt.lo == 0 {
		next = join(next, span{s.lo, min(s.hi, in.to)})
	}
	return seen{next.lo, next.hi, s.freed}, next.lo <= next.hi
}

// perhaps: what is in doubt.
func (s seen) perhaps(in seenInput) seen {
	by := in.call.Interval * in.call.Cost
	switch {
	case in.verb == throttle && by > 0:
		return seen{s.lo, max(s.hi, in.to) + by, s.freed}
	case in.verb == throttle && by < 0:
		return seen{s.lo + by, s.hi, math.MaxInt64}
	case in.verb == reset:
		return seen{far, s.hi, math.MaxInt64}
	}
	return s
}

// join is the least span that holds both; one that is empty counts for nothing.
func join(a, b span) span {
	switch {
	case a.lo > a.hi:
		return b
	case b.lo > b.hi:
		return a
	}
	return span{min(a.lo, b.lo), max(a.hi, b.hi)}
}
