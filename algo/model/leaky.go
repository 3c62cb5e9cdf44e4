package model

import "math/big"

// Queue is a leaky bucket as a queue: what is accepted waits in line, each unit is
// served for interval ns, and one behind the other. It keeps the whole line. The
// zero value is an empty one.
type Queue struct {
	line []job // in the order in which they are served; they touch
}

// job is served from start to before end.
type job struct{ start, end *big.Int }

// Take asks for room for cost units at time now, in a queue that holds places of
// them, the one that is served included. Times must not decrease. A cost of 0 asks
// whether there are not too many already; a negative cost takes the last units out
// of the line, also those that are served by now, as far as they are not done.
//
// The interval may differ from call to call: what stands in the line keeps the time
// that it was accepted with, and is counted at the new one.
func (q *Queue) Take(now, interval, places, cost *big.Int) Answer {
	for len(q.line) > 0 && q.line[0].end.Cmp(now) <= 0 {
		q.line = q.line[1:]
	}
	a := Answer{Wait: new(big.Int), Delay: new(big.Int)}
	room := new(big.Rat).Sub(new(big.Rat).SetInt(places), q.waiting(now, interval))
	price := new(big.Rat).SetInt(cost)
	switch {
	case cost.Sign() < 0:
		a.Allowed = true
		q.shorten(now, new(big.Int).Mul(new(big.Int).Neg(cost), interval))
	case price.Cmp(new(big.Rat).SetInt(places)) > 0:
		a.Wait = nil
	case price.Cmp(room) > 0:
		missing := new(big.Rat).Sub(price, room)
		a.Wait = ceil(missing.Mul(missing, new(big.Rat).SetInt(interval)))
	default:
		a.Allowed = true
		start := now
		if n := len(q.line); n > 0 {
			start = q.line[n-1].end
		}
		a.Delay.Sub(start, now)
		if cost.Sign() > 0 {
			end := new(big.Int).Mul(cost, interval)
			q.line = append(q.line, job{start, end.Add(end, start)})
		}
	}
	a.Remaining = floor(room.Sub(new(big.Rat).SetInt(places), q.waiting(now, interval)))
	if a.Remaining.Sign() < 0 {
		a.Remaining.SetInt64(0)
	}
	a.Reset = new(big.Int)
	if n := len(q.line); n > 0 {
		a.Reset.Sub(q.line[n-1].end, now)
	}
	return a
}

// waiting is how many units of interval ns are in the line; one that is served counts
// for what is left of it.
func (q *Queue) waiting(now, interval *big.Int) *big.Rat {
	sum := new(big.Rat)
	for _, j := range q.line {
		left := new(big.Int).Sub(j.end, maxInt(j.start, now))
		sum.Add(sum, new(big.Rat).SetFrac(left, interval))
	}
	return sum
}

// shorten takes time off the end of the line.
func (q *Queue) shorten(now, time *big.Int) {
	for n := len(q.line); n > 0 && time.Sign() > 0; n-- {
		last := q.line[n-1]
		start := maxInt(last.start, now)
		left := new(big.Int).Sub(last.end, start)
		if left.Cmp(time) > 0 {
			q.line[n-1].end = new(big.Int).Sub(last.end, time)
			return
		}
		time.Sub(time, left)
		q.line = q.line[:n-1]
	}
}

func maxInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}
