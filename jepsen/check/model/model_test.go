package model

import (
	"math"
	"testing"
)

// step is a call at a time, and the reply to give.
type step struct {
	at                           int64 // ns since the first
	maxBurst, count, period, qty int64
	reply                        [5]int64
}

// TestTheModelKeepsTheRules: sequences whose replies were worked out by hand or are
// in the tests of redis-cell.
func TestTheModelKeepsTheRules(t *testing.T) {
	const start = 1_800_000_000_000_000_000
	for name, steps := range map[string][]step{
		"strict spacing": {
			{0, 0, 1, 2, 1, [5]int64{0, 1, 0, -1, 2}},
			{300_000, 0, 1, 2, 1, [5]int64{1, 1, 0, 2, 2}},
			{1_999_999_999, 0, 1, 2, 1, [5]int64{1, 1, 0, 1, 1}},
			{2_000_000_000, 0, 1, 2, 1, [5]int64{0, 1, 0, -1, 2}},
		},
		"more than fits can never pass and stores nothing": {
			{0, 4, 1, 1, 6, [5]int64{1, 5, 5, -1, 0}},
			{0, 4, 1, 1, 5, [5]int64{0, 5, 0, -1, 5}},
			{0, 4, 1, 1, 1, [5]int64{1, 5, 0, 1, 5}},
		},
		"a peek at an empty bucket is allowed, a shrunk one denies it": {
			{0, 4, 1, 1, 5, [5]int64{0, 5, 0, -1, 5}},
			{0, 4, 1, 1, 0, [5]int64{0, 5, 0, -1, 5}},
			{0, 1, 1, 1, 0, [5]int64{1, 2, 0, 3, 5}},
			{3e9, 1, 1, 1, 0, [5]int64{0, 2, 0, -1, 2}},
		},
		"a refund stops at a full bucket": {
			{0, 4, 1, 1, 2, [5]int64{0, 5, 3, -1, 2}},
			{0, 4, 1, 1, -1, [5]int64{0, 5, 4, -1, 1}},
			{0, 4, 1, 1, -100, [5]int64{0, 5, 5, -1, 0}},
			{0, 4, 1, 1, 5, [5]int64{0, 5, 0, -1, 5}},
		},
		"the interval is cut to whole nanoseconds": {
			{0, 0, 3, 1, 1, [5]int64{0, 1, 0, -1, 1}},
			{333_333_332, 0, 3, 1, 1, [5]int64{1, 1, 0, 1, 1}},
			{333_333_333, 0, 3, 1, 1, [5]int64{0, 1, 0, -1, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s State
			for i, x := range steps {
				var a Answer
				a, s = s.Take(start+x.at, Call{Interval(x.count, x.period), x.maxBurst + 1, x.qty})
				if got := a.Reply(x.maxBurst + 1); got != x.reply {
					t.Errorf("step %d: %v, want %v", i, got, x.reply)
				}
			}
		})
	}
}

func TestNothingWraps(t *testing.T) {
	a, s := State{}.Take(math.MaxInt64, Call{math.MaxInt64, math.MaxInt64, math.MaxInt64})
	if !a.Allowed || a.Remaining != 0 || a.Reset != math.MaxInt64 {
		t.Errorf("%+v", a)
	}
	if a, _ = s.Take(math.MinInt64, Call{1, 1, 1}); a.Allowed || a.Retry != math.MaxInt64 {
		t.Errorf("%+v", a)
	}
	if a, _ = s.Take(0, Call{math.MaxInt64, 1, math.MinInt64}); !a.Allowed || a.Remaining != 1 {
		t.Errorf("%+v", a)
	}
	if Interval(1, math.MaxInt64) != 0 || Interval(0, 1) != 0 || Interval(-1, -1) != 0 {
		t.Error("an interval that there is not")
	}
}
