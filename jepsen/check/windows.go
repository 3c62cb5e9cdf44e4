package check

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"limitd/jepsen/check/model"
)

// windowSum keeps what was charged and given back in the last two periods, or in the window.
type windowSum struct {
	limit model.Limit
	all   []entered
}

type entered struct {
	d     *decision
	units int64 // below 0: given back
}

func (s *windowSum) add(d *decision, units int64) (*big.Int, *decision) {
	now, w := d.row.At, s.limit.Period
	start, _ := s.limit.Window(now)
	gone := 0
	for gone < len(s.all) && s.all[gone].d.row.At < start && s.all[gone].d.row.At <= now-2*w {
		gone++
	}
	s.all = append(s.all[gone:], entered{d, units})
	if units < 0 {
		return new(big.Int), nil
	}
	excess, since := int64(0), d
	see := func(from, most int64) { // from that time on
		if sum, first := s.since(from); sum-most > excess {
			excess, since = sum-most, first
		}
	}
	switch s.limit.Algorithm {
	case model.Log:
		see(now-w+1, s.limit.Burst)
	case model.Sliding:
		see(now-w+1, 2*s.limit.Burst-1)
		see(start, s.limit.Burst)
	default:
		see(start, s.limit.Burst)
	}
	if excess > 0 {
		s.all = append(s.all, entered{d, -excess}) // each excess once
	}
	return big.NewInt(excess), since
}

// since adds up from a time on.
func (s *windowSum) since(from int64) (sum int64, first *decision) {
	for _, c := range s.all {
		if c.d.row.At < from {
			continue
		}
		if first == nil {
			first = c.d
		}
		sum += c.units
	}
	return sum, first
}

// judgeWindows judges intervals that are shorter than a period, by what clients saw.
func judgeWindows(k key, l model.Limit, admitted []admission, given []gift, r *result) {
	bound := map[uint8]int64{model.Log: l.Burst, model.Sliding: 2*l.Burst - 1}[l.Algorithm]
	if bound == 0 {
		bound = 2 * l.Burst
	}
	window := l.Shortest()
	slices.SortFunc(admitted, func(a, b admission) int { return cmp.Compare(a.from, b.from) })
	for i, a := range admitted {
		var inside []admission // those that begin in the interval and end in time, by their ends
		for _, b := range admitted[i:] {
			if stretched(b.from-a.from) >= window {
				break
			}
			if stretched(b.to-a.from) < window {
				inside = append(inside, b)
			}
		}
		slices.SortFunc(inside, func(a, b admission) int { return cmp.Compare(a.to, b.to) })
		sum, most := int64(0), bound
		for _, b := range inside {
			sum += b.cost
			if sum <= most {
				continue
			}
			if most = bound + back(given, bound, a.from, b.to); sum <= most {
				continue
			}
			x := Example{
				Says: fmt.Sprintf("from %d to %d ns of the run clients saw %d units more than %s allows", a.from, b.to, sum-most, describe(l)),
				Key:  k.String(), Node: b.op.invoke.Node,
			}
			for _, c := range inside {
				x.Events = append(x.Events, c.op.events()...)
			}
			r.bad(x)
			return // one for each record and limit
		}
	}
}

// back is what was given back in an interval, at most; of a reset as much as the bound.
func back(given []gift, bound, from, to int64) (units int64) {
	for _, g := range given {
		if g.o.from() > to || g.o.to() < from {
			continue
		}
		if g.units > 0 {
			units += g.units
		} else {
			units += bound
		}
	}
	return units
}
