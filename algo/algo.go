// Package algo holds the limiters as pure functions over int64 nanoseconds.
//
// A limiter decides: given the state of one record (or none), a limit, the
// cluster time and a cost it says yes or no, with the reason (how long to wait,
// what is left), and what the decision changes. Nothing here reads a clock,
// does I/O, starts a goroutine or allocates on the way of a decision; the same
// arguments always give the same answer. algo imports nothing of limitd, except the
// switches of package mutant, which are off but in the builds that have them.
//
// A command line becomes a [Limit] by a constructor ([NewThrottle]), which
// refuses whatever could overflow later, with an [ArgError] that names the
// argument. [Limit.CheckCost] does the same for a cost. After these two,
// [Limit.Decide] has nothing left to refuse: it returns a [Verdict] for the
// client and an [Effect] for the record, and it never fails, whatever the bytes
// of the state are.
//
// The state of a record belongs to its algorithm alone; everyone else stores
// and moves opaque bytes with an expiry. The layouts are described where the
// algorithm is: gcra.go.
package algo

import "fmt"

// Algorithm names a limiter. The value is part of a record's identity on disk:
// never renumber.
type Algorithm uint8

const (
	// Throttle is CL.THROTTLE: GCRA with one record per key, whatever the parameters.
	Throttle Algorithm = 1
	// GCRA, Token, Leaky, Fixed, Sliding and Log are 2 to 7 (reserved).
)

// Limit is one limit as a call brings it: checked, and in integers.
// It is a value; make it with [NewThrottle], which guarantees (and [Limit.Check] tests)
// Interval >= 1, Burst >= 1 and Interval*Burst <= 2^62.
type Limit struct {
	Algorithm Algorithm
	Interval  int64 // emission interval T, ns for one unit
	Burst     int64 // capacity in units (redis-cell's max_burst + 1)
}

// Verdict is the answer to one decision. Durations are in ns, exact.
type Verdict struct {
	Allowed    bool
	Limit      int64 // capacity in units
	Remaining  int64 // units left after the call (before it, if denied), 0..Limit
	RetryAfter int64 // 0 when allowed; Never when it can never pass; else the shortest wait that suffices
	ResetAfter int64 // until the record means nothing any more
}

// Never is the RetryAfter of a cost above the capacity.
const Never = -1

// EffectOp says what a decision does to the record.
type EffectOp uint8

const (
	None    EffectOp = iota // nothing changes
	Replace                 // the state becomes State
	Splice                  // drop Drop bytes in front, append State
)

// Effect is what a decision changes. A denied decision has op None.
type Effect struct {
	Op     EffectOp
	Drop   int
	State  []byte // aliases the buffer given to Decide
	Expiry int64  // cluster time from which the record means the same as no record
}

// The one-byte identity of CL.THROTTLE's record. Not modified by anyone.
var throttleIdent = []byte{byte(Throttle)}

// Ident returns the bytes that, with the key, identify the record of l: 1 to
// 255 of them. The result is shared and must not be modified.
func (l Limit) Ident() []byte {
	switch l.Algorithm {
	case Throttle:
		return throttleIdent
	}
	panic(l.unmade())
}

// Decide decides a call of cost units at time now (ns, cluster time) on state
// (empty: no record, or an expired one). A cost of 0 asks and changes nothing;
// a negative cost gives units back. buf gives room for the new state: if its
// capacity suffices, nothing is allocated; state and buf must not overlap.
//
// An Effect with Expiry <= now leaves a record that reads as absent.
//
// Decide panics only on a Limit that no constructor made.
func (l Limit) Decide(state []byte, now, cost int64, buf []byte) (v Verdict, e Effect) {
	switch l.Algorithm {
	case Throttle:
		l.gcra(&v, &e, state, now, cost, buf)
	default:
		panic(l.unmade())
	}
	return v, e
}

func (l Limit) unmade() string {
	return fmt.Sprintf("algo: limit of unknown algorithm %d: make limits with NewThrottle", l.Algorithm)
}

// ArgError names the argument of a command that cannot be used, and why.
type ArgError struct {
	Arg string // the argument's name, as in the usage line: max_burst, count, period, quantity
	Msg string // full text after "ERR ", naming the argument
}

func (e *ArgError) Error() string { return e.Msg }
