package algo

import "math"

// What the counters (fixed, sliding, log) share.

// maxUnits is the largest limit of a window: sums of two such counts fit into an int64.
const maxUnits = 1 << 61

// mod is the time into the window of length w that now lies in, also before 1970.
func mod(now, w int64) int64 {
	m := now % w
	if m < 0 {
		m += w
	}
	return m
}

// units is what a refund of back units (a negated negative cost, so it may have
// wrapped) gives back of used: at most all of it.
func units(back, used int64) int64 {
	if back < 0 || back > used {
		return used
	}
	return back
}

// unreadable is the wait and reset of a record whose state cannot be read: it
// must not admit, until it expires or the key is reset.
func unreadable(period int64) (retry, reset int64) {
	if period > math.MaxInt64/2 {
		return math.MaxInt64, math.MaxInt64
	}
	return 2 * period, 2 * period
}
