// Package algo holds the limiters as pure functions over int64 nanoseconds.
//
// A limiter decides: given the state of one record (or none), a limit, the
// cluster time and a cost it says yes or no, with the reason (how long to wait,
// what is left), and what the decision changes. Nothing here reads a clock,
// does I/O, starts a goroutine or allocates on the way of a decision; the same
// arguments always give the same answer. algo imports nothing of limitd, except the
// switches of package mutant, which are off but in the builds that have them.
//
// A limit expression such as "log:3/10m" becomes a [Limit] by [Parse], the
// arguments of CL.THROTTLE by [NewThrottle]. Both refuse whatever could overflow
// later, with an error that names what is wrong: an [ExprError] points at the
// character, an [ArgError] names the argument. [Limit.CheckCost] does the same
// for a cost. After these, [Limit.Decide] has nothing left to refuse: it returns
// a [Verdict] for the client and an [Effect] for the record, and it never fails,
// whatever the bytes of the state are.
//
// The state of a record belongs to its algorithm alone; everyone else stores
// and moves opaque bytes with an expiry. The layouts are described where the
// algorithm is: gcra.go, fixed.go, sliding.go, log.go.
package algo

import "fmt"

// Algorithm names a limiter. The value is part of a record's identity on disk:
// never renumber.
type Algorithm uint8

const (
	Throttle Algorithm = 1 // CL.THROTTLE: GCRA with one record per key, whatever the parameters
	GCRA     Algorithm = 2 // generic cell rate algorithm
	Token    Algorithm = 3 // token bucket: GCRA's arithmetic
	Leaky    Algorithm = 4 // leaky bucket as a queue: GCRA's arithmetic, and the time to wait
	Fixed    Algorithm = 5 // counter per window, from the epoch or of the calendar
	Sliding  Algorithm = 6 // sliding window counter: two windows, the older one weighted
	Log      Algorithm = 7 // exact sliding log
)

// Limit is one limit as a call brings it: checked, and in integers.
// It is a value; make it with [Parse] or [NewThrottle], which guarantee
//
//	Throttle, GCRA, Token, Leaky: Interval >= 1, Burst >= 1, Interval*Burst <= 2^62
//	Fixed, Sliding, Log:          Burst >= 1; a period, or a calendar
type Limit struct {
	Algorithm Algorithm
	Interval  int64 // emission interval T, ns for one unit; 0 for counters
	Burst     int64 // capacity in units: burst, queue + 1, or the limit of a window

	*expr // what the expression says besides; nil for Throttle
}

// expr is the part of a limit that most decisions do not need. It is shared and
// never modified.
type expr struct {
	text     string    // canonical: what String returns
	ident    []byte    // what Ident returns
	limit    int64     // per period, as written
	period   int64     // ns; 0: a calendar window
	calendar *calendar // nil: windows are counted from the epoch
}

// Verdict is the answer to one decision. Durations are in ns, exact.
type Verdict struct {
	Allowed    bool
	Limit      int64 // capacity in units
	Remaining  int64 // units left after the call (before it, if denied), 0..Limit
	RetryAfter int64 // 0 when allowed; Never when it can never pass; else the shortest wait that suffices
	ResetAfter int64 // until the record means nothing any more
	Delay      int64 // leaky: how long to wait before acting; else 0
}

// Never is the RetryAfter of a cost above the capacity.
const Never = -1

// EffectOp says what a decision does to the record.
type EffectOp uint8

const (
	None    EffectOp = iota // nothing changes
	Replace                 // the state becomes State
	Splice                  // drop Drop bytes in front and Cut bytes at the end, append State
)

// Effect is what a decision changes. A denied decision has op None.
type Effect struct {
	Op     EffectOp
	Drop   int
	Cut    int
	State  []byte // aliases the buffer given to Decide
	Expiry int64  // cluster time from which the record means the same as no record
}

// The one-byte identity of CL.THROTTLE's record. Not modified by anyone.
var throttleIdent = []byte{byte(Throttle)}

// Ident returns the bytes that, with the key, identify the record of l: 1 to
// 255 of them (see ident.go). The result is shared and must not be modified.
func (l Limit) Ident() []byte {
	switch {
	case l.expr != nil:
		return l.ident
	case l.Algorithm == Throttle:
		return throttleIdent
	}
	panic(l.unmade())
}

// Decide decides a call of cost units at time now (ns, cluster time) on state
// (empty: no record, or an expired one). A date is now + offset. A cost of 0 asks
// and changes nothing; a negative cost gives units back. buf gives room for the
// new state: if its capacity suffices, nothing is allocated; state and buf must
// not overlap.
//
// An Effect with Expiry <= now leaves a record that reads as absent.
//
// Decide panics only on a Limit that no constructor made.
func (l Limit) Decide(state []byte, now, offset, cost int64, buf []byte) (v Verdict, e Effect) {
	switch l.Algorithm {
	case Throttle, GCRA, Token:
		l.gcra(&v, &e, state, now, cost, buf)
	case Leaky:
		l.leaky(&v, &e, state, now, cost, buf)
	case Fixed:
		l.fixed(&v, &e, state, now, offset, cost, buf)
	case Sliding:
		l.sliding(&v, &e, state, now, cost, buf)
	case Log:
		l.log(&v, &e, state, now, cost, buf)
	default:
		panic(l.unmade())
	}
	return v, e
}

func (l Limit) unmade() string {
	return fmt.Sprintf("algo: limit of unknown algorithm %d: make limits with Parse or NewThrottle", l.Algorithm)
}

// ArgError names the argument of a command that cannot be used, and why.
type ArgError struct {
	Arg string // the argument's name, as in the usage line: max_burst, count, period, quantity
	Msg string // full text after "ERR ", naming the argument
}

func (e *ArgError) Error() string { return e.Msg }
