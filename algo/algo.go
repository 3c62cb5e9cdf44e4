// Package algo holds the limiters as pure functions over int64 nanoseconds.
//
// A limiter decides: given the state of one record (or none), a limit, the
// cluster time and a cost it says yes or no, with the reason (how long to wait,
// what is left), and what the decision changes. Nothing here reads a clock,
// does I/O, starts a goroutine or allocates on the way of a decision; the same
// arguments always give the same answer. algo imports nothing of limitd.
package algo

// Algorithm names a limiter. The value is part of a record's identity on disk:
// never renumber.
type Algorithm uint8

const (
	// Throttle is CL.THROTTLE: GCRA with one record per key, whatever the parameters.
	Throttle Algorithm = 1
	// GCRA, Token, Leaky, Fixed, Sliding and Log are 2 to 7 (reserved).
)

// Limit is one limit as a call brings it: checked, and in integers.
// It is a value; make it with [NewThrottle].
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

// ArgError names the argument of a command that cannot be used, and why.
type ArgError struct {
	Arg string // the argument's name, as in the usage line: max_burst, count, period, quantity
	Msg string // full text after "ERR ", naming the argument
}

func (e *ArgError) Error() string { return e.Msg }
