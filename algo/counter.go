package algo

// What the counters (fixed, sliding, log) share.

// maxUnits is the largest limit of a window: sums of two such counts fit into an int64.
const maxUnits = 1 << 61

// firstDate is the first time that counters decide at, in 1933.
const firstDate = -1 << 60

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

// decidable says that the sums of a counter's decision fit into an int64: cluster
// time and date are in 1933 to 2116, their difference is below 36 years. Otherwise
// everything is denied: a counter that may have wrapped must not admit.
func decidable(now, offset int64) bool {
	inTime := func(t int64) bool { return firstDate <= t && t < maxSpan }
	return inTime(now) && firstDate <= offset && offset <= -firstDate && inTime(now+offset)
}

// unreadable fills in the answer to a call on a state that no decision made. It must
// not admit, until it expires or the key is reset.
func (l Limit) unreadable(v *Verdict, cost int64) {
	v.RetryAfter, v.ResetAfter = 2*l.nominal(), 2*l.nominal() // no counter keeps a record for longer
	if cost > l.Burst {
		v.RetryAfter = Never
	}
}
