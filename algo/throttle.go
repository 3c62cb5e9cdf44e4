package algo

import (
	"fmt"
	"math/bits"
)

// maxSpan is the longest time that a limit or a cost may stand for: 2^62 ns,
// 146 years. It is what makes the sums of a decision fit into an int64.
const maxSpan = 1 << 62

// NewThrottle makes the limit of CL.THROTTLE key max_burst count period:
// max_burst units above one, refilled at count per period seconds.
//
//	T     = floor(period * 10^9 / count)   ns
//	Burst = max_burst + 1
//
// The rate that is kept is 1/T. It is an [*ArgError] if an argument is negative,
// if the rate is zero (count or period 0) or above 10^9 per second (T would be
// 0), and if T * Burst is above 2^62.
func NewThrottle(maxBurst, count, period int64) (Limit, error) {
	if maxBurst < 0 || count < 1 || period < 1 {
		return Limit{}, rangeError(maxBurst, count, period)
	}
	hi, lo := bits.Mul64(uint64(period), 1e9)
	if hi >= uint64(count) { // the quotient would need more than 64 bits
		return Limit{}, periodError(count, period)
	}
	interval, _ := bits.Div64(hi, lo, uint64(count))
	if interval == 0 {
		return Limit{}, &ArgError{"count", fmt.Sprintf(
			"Zero rates are not supported: count %d in a period of %d s is more than 10^9 per second", count, period)}
	}
	if interval > maxSpan {
		return Limit{}, periodError(count, period)
	}
	burst := uint64(maxBurst) + 1
	if !fits(interval, burst) {
		return Limit{}, &ArgError{"max_burst", fmt.Sprintf(
			"max_burst %d is too large: at %d ns for one unit, a bucket of %d would take more than 2^62 ns (146 years) to fill",
			maxBurst, interval, burst)}
	}
	return Limit{Algorithm: Throttle, Interval: int64(interval), Burst: int64(burst)}, nil
}

// Check reports whether l is a limit that NewThrottle could have made: for one
// whose numbers came over a wire.
func (l Limit) Check() error {
	if l.Algorithm != Throttle || l.expr != nil {
		return fmt.Errorf("algorithm %d has no limit without an expression", l.Algorithm)
	}
	if l.Interval < 1 || l.Burst < 1 || !fits(uint64(l.Interval), uint64(l.Burst)) {
		return fmt.Errorf("limit out of range: interval %d ns, burst %d", l.Interval, l.Burst)
	}
	return nil
}

// CheckCost reports whether cost (may be negative: a refund) can be represented
// under l: T * |cost| <= 2^62. The error is an [*ArgError] for quantity.
// A cost above the capacity is no error here; it is denied with [Never].
func (l Limit) CheckCost(cost int64) error {
	if l.Algorithm != Throttle {
		return nil // what is too much is denied for ever, or gives all back
	}
	units := uint64(cost)
	if cost < 0 {
		units = -units
	}
	if fits(uint64(l.Interval), units) {
		return nil
	}
	return &ArgError{"quantity", fmt.Sprintf(
		"quantity %d is out of range: at %d ns for one unit, it stands for more than 2^62 ns (146 years)", cost, l.Interval)}
}

// CeilSeconds turns a duration in ns into whole seconds, rounded up, so that
// who waits as long has waited long enough, and a wait is never said to be 0.
func CeilSeconds(ns int64) int64 {
	s := ns / 1e9
	if ns%1e9 > 0 {
		s++
	}
	return s
}

// fits says that interval * units <= 2^62.
func fits(interval, units uint64) bool {
	hi, lo := bits.Mul64(interval, units)
	return hi == 0 && lo <= maxSpan
}

func rangeError(maxBurst, count, period int64) error {
	switch {
	case maxBurst < 0:
		return &ArgError{"max_burst", fmt.Sprintf("max_burst must be 0 or more, not %d", maxBurst)}
	case count < 0:
		return &ArgError{"count", fmt.Sprintf("count must be 1 or more, not %d", count)}
	case period < 0:
		return &ArgError{"period", fmt.Sprintf("period must be 1 second or more, not %d", period)}
	case count == 0:
		return &ArgError{"count", "Zero rates are not supported: count must be 1 or more, not 0"}
	default:
		return &ArgError{"period", "Zero rates are not supported: period must be 1 second or more, not 0"}
	}
}

func periodError(count, period int64) error {
	return &ArgError{"period", fmt.Sprintf(
		"period %d s is too long for count %d: one unit would take more than 2^62 ns (146 years)", period, count)}
}
