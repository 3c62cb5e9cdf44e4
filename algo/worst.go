package algo

// WorstCase is the most units that l admits in any (t-W, t], W its period: the
// most that anybody who chooses the times can get, without refunds, as long as the
// limit's numbers stay. For calendar windows it holds for stretches that are not
// longer than the shortest window that they touch; 0 for CL.THROTTLE's, which
// names no period that could be meant.
//
// GCRA, token, leaky: Burst + floor((W-1)/T). Let the first admission be at s and
// the last at t, so t-s <= W-1. Just behind the last, tat - t <= T*Burst. Each
// admission moves tat by T for each unit, the first one from s or later, so
// tat >= s + T*units. Together T*units <= T*Burst + W-1. It is reached by a full
// bucket at once and one unit each T from then on.
//
// Fixed: 2*limit. (t-W, t] touches two windows at most, and a window never admits
// more than its limit. It is reached around a boundary.
//
// Sliding: 2*limit - 1. (t-W, t] touches two windows at most, and takes a units of
// the first and c of the second. If c > 0, the last admission is less than W behind
// the first, so some of the first window still counts: with prev >= a, left >= 1
// of W, a*left + c*W <= limit*W, and so c < limit if a > 0. And a <= limit. It is
// reached when nearly a whole window lies between: limit units at the end of one,
// limit-1 just before the end of the next (if limit <= W/2 ns; above, almost).
//
// Log: limit, which is its definition.
func (l Limit) WorstCase() int64 {
	switch l.Algorithm {
	case GCRA, Token, Leaky:
		return l.Burst + (l.expr.period-1)/l.Interval
	case Fixed:
		return 2 * l.Burst
	case Sliding:
		return 2*l.Burst - 1
	case Log:
		return l.Burst
	}
	return 0
}
