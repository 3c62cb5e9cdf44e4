package algo

import (
	"encoding/binary"
	"math"
	"math/bits"

	"limitd/mutant"
)

// The generic cell rate algorithm (ITU-T I.371), virtual scheduling form.
//
// State: 8 bytes, little endian: tat, the theoretical arrival time in ns of
// cluster time, that is, the time at which the bucket is full again. It is also
// the record's expiry. With T = Interval and tau = T * Burst:
//
//	base    = max(tat, now)            no record: now
//	debt    = base - now               what the bucket lacks, as a time
//	allowed = debt + T*cost <= tau     equal is allowed
//	tat'    = base + T*cost            only if allowed and cost is not 0
//
// A tat says nothing of the parameters it was made with, so a call may bring
// others than the call before: the debt stays, its price changes. If they
// shrank, the debt may exceed tau; then nothing is left, and even a peek is
// denied until it has run down to tau.
//
// Why nothing wraps. The constructor keeps tau <= 2^62, and a charge is tried
// only with cost <= Burst, so T*cost <= tau. The sums are written as differences
// of values in 0..2^63-1. Cluster time starts at a wall clock and moves with
// elapsed time, so it is in 0..2^62 until the year 2116 and base + T*cost fits.
// Outside of that the answers err on the side of denial: a debt that does not
// fit is taken as 2^63-1, and a charge whose tat' does not fit is denied.
//
// A state of any other length was not written here. It is read as a tat at
// the end of time: calls are denied until the key is reset, because a record
// that cannot be read must not admit. Eight damaged bytes cannot be told from
// a tat; that is for the checksums of whoever stores them.
//
// A token bucket of capacity Burst that gains a unit each Interval is the same
// arithmetic. So is a leaky bucket that lets one unit out each Interval and has
// room for Burst of them, the one that is let out at once included: its debt is
// also the time that an accepted call waits for its turn.

const tatSize = 8

// gcra fills in v and e, which are zero. (They are pointers because results of
// this size are copied once per return: a third of the time of a decision.)
func (l Limit) gcra(v *Verdict, e *Effect, state []byte, now, cost int64, buf []byte) {
	base := now
	switch len(state) {
	case 0:
	case tatSize:
		base = max(now, int64(binary.LittleEndian.Uint64(state)))
	default:
		base = math.MaxInt64
	}
	debt := base - now
	if debt < 0 { // now is before 1970, base is beyond 2116
		debt = math.MaxInt64
	}
	tau := l.Interval * l.Burst
	inc := l.Interval * cost // may wrap, but not where it is used: 0 <= cost <= Burst

	switch {
	case cost < 0:
		v.Allowed = true
		back := l.refund(debt, uint64(-cost))
		debt -= back
		e.replaceTAT(base-back, buf)
	case cost > l.Burst:
		v.RetryAfter = Never
	case debt > tau-inc, mutant.On("ge-at-burst-edge") && debt == tau-inc:
		v.RetryAfter = debt - (tau - inc)
	case cost == 0:
		v.Allowed = true
	case base > math.MaxInt64-inc:
		v.RetryAfter = Never
	default:
		v.Allowed = true
		debt += inc
		e.replaceTAT(base+inc, buf)
	}
	v.Limit = l.Burst
	v.Remaining = max(0, tau-debt) / l.Interval
	v.ResetAfter = debt
}

// leaky is gcra, and says how long to wait before acting: what was ahead in the
// queue. A call of several units waits for its first.
func (l Limit) leaky(v *Verdict, e *Effect, state []byte, now, cost int64, buf []byte) {
	l.gcra(v, e, state, now, cost, buf)
	if v.Allowed && cost >= 0 {
		v.Delay = v.ResetAfter - l.Interval*cost
	}
}

// refund is the time that units given back take off the debt: at most all of
// it, a full bucket. A refund is always allowed and always an effect, so that
// its answer is an agreed one; with tat = expiry = now the record reads as
// absent.
func (l Limit) refund(debt int64, units uint64) int64 {
	if mutant.On("refund-twice") {
		units *= 2
	}
	hi, back := bits.Mul64(uint64(l.Interval), units)
	if hi != 0 || back > uint64(debt) {
		return debt
	}
	return int64(back)
}

func (e *Effect) replaceTAT(tat int64, buf []byte) {
	if mutant.On("tat-rounded-to-ms") {
		tat -= tat % 1e6
	}
	e.Op = Replace
	e.State = binary.LittleEndian.AppendUint64(buf[:0], uint64(tat))
	e.Expiry = tat
}
