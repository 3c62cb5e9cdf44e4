package sim

import (
	"limitd/jepsen/check/model"
	"limitd/trace"
)

// answer is what a call must be answered at now on the states that look finds, and
// the states that it changes.
func answer(c *trace.Call, now int64, look func(key string) model.State) (trace.Call, map[string]model.State) {
	want := *c
	want.Status = "ok"
	changed := map[string]model.State{}
	switch c.Op {
	case "take":
		a, s := look(c.Key).Take(now, model.Call{Interval: c.Interval, Burst: c.Burst, Cost: c.Cost})
		want.Allowed, want.Remaining, want.Retry, want.Reset = a.Allowed, a.Remaining, a.Retry, a.Reset
		if a.Allowed && c.Cost != 0 {
			changed[c.Key] = s
		}
	case "reset", "exists":
		want.N = 0
		for _, key := range append([]string{c.Key}, c.More...) {
			s := look(key)
			if _, twice := changed[key]; twice {
				continue
			}
			if s.Debt(now) > 0 {
				want.N++
			}
			if c.Op == "reset" {
				changed[key] = model.State{}
			}
		}
	case "ttl":
		if want.N = look(c.Key).Debt(now); want.N == 0 {
			want.N = -2
		}
	}
	return want, changed
}
