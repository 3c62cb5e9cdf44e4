package algo

import (
	"encoding/binary"
	"math"
	"math/bits"
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

const tatSize = 8

func (l Limit) gcra(state []byte, now, cost int64, buf []byte) (Verdict, Effect) {
	base := now
	switch {
	case len(state) == tatSize:
		base = max(now, int64(binary.LittleEndian.Uint64(state)))
	case len(state) != 0:
		base = math.MaxInt64
	}
	debt := base - now
	if debt < 0 { // now is before 1970, base is beyond 2116
		debt = math.MaxInt64
	}
	if cost < 0 {
		return l.refund(base, now, debt, uint64(-cost), buf)
	}
	if cost > l.Burst {
		return l.denied(debt, Never), Effect{}
	}
	// debt + T*cost <= tau, with both sides in range.
	room := l.Interval*l.Burst - l.Interval*cost
	if debt > room {
		return l.denied(debt, debt-room), Effect{}
	}
	if cost == 0 {
		return l.allowed(debt), Effect{}
	}
	inc := l.Interval * cost
	tat := base + inc
	if tat < base {
		return l.denied(debt, Never), Effect{}
	}
	return l.allowed(debt + inc), replaceTAT(tat, buf)
}

// refund gives units back, up to a full bucket. It is always allowed and always
// an effect, so that the answer is an agreed one. A bucket that is full again
// leaves tat = expiry = now, which reads as absent.
func (l Limit) refund(base, now, debt int64, units uint64, buf []byte) (Verdict, Effect) {
	hi, back := bits.Mul64(uint64(l.Interval), units)
	if hi != 0 || back >= uint64(debt) {
		return l.allowed(0), replaceTAT(now, buf)
	}
	return l.allowed(debt - int64(back)), replaceTAT(base-int64(back), buf)
}

func (l Limit) allowed(debt int64) Verdict {
	return Verdict{Allowed: true, Limit: l.Burst, Remaining: l.remaining(debt), ResetAfter: debt}
}

func (l Limit) denied(debt, retryAfter int64) Verdict {
	return Verdict{Limit: l.Burst, Remaining: l.remaining(debt), RetryAfter: retryAfter, ResetAfter: debt}
}

// remaining is the number of whole units that could pass with this debt.
func (l Limit) remaining(debt int64) int64 {
	return max(0, l.Interval*l.Burst-debt) / l.Interval
}

func replaceTAT(tat int64, buf []byte) Effect {
	return Effect{
		Op:     Replace,
		State:  binary.LittleEndian.AppendUint64(buf[:0], uint64(tat)),
		Expiry: tat,
	}
}
