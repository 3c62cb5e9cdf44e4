//go:build mutant

package algo

import (
	"encoding/binary"
	"testing"

	"limitd/mutant"
)

// Each defect decides otherwise than the limiter, where a check can see it.
func TestDefectsOfGCRAShow(t *testing.T) {
	t.Cleanup(func() { mutant.Choose("") })
	limit := Limit{Algorithm: Throttle, Interval: 1_500_000, Burst: 4}
	const now = int64(1_000_000_000_300_000)
	for _, c := range []struct {
		name  string
		debt  int64 // in units
		cost  int64
		allow bool
		units int64 // debt afterwards, ns, without the defect
		shows func(v Verdict, tat int64) bool
	}{
		{"tat-rounded-to-ms", 0, 1, true, 1, func(v Verdict, tat int64) bool { return v.Allowed && tat < now+limit.Interval }},
		{"ge-at-burst-edge", 0, 4, true, 4, func(v Verdict, _ int64) bool { return !v.Allowed && v.RetryAfter == 0 }},
		{"refund-twice", 3, -1, true, 2, func(v Verdict, tat int64) bool { return tat == now+limit.Interval }},
	} {
		decide := func() (Verdict, int64) {
			before := binary.LittleEndian.AppendUint64(nil, uint64(now+c.debt*limit.Interval))
			v, e := limit.Decide(before, now, 0, c.cost, nil)
			if e.Op == None {
				return v, 0
			}
			return v, int64(binary.LittleEndian.Uint64(e.State))
		}
		mutant.Choose("")
		if v, tat := decide(); v.Allowed != c.allow || tat != now+c.units*limit.Interval {
			t.Errorf("%s, off: %+v, tat %d", c.name, v, tat)
		}
		mutant.Choose(c.name)
		if v, tat := decide(); !c.shows(v, tat) {
			t.Errorf("%s, on: %+v, tat %d", c.name, v, tat)
		}
	}
}
