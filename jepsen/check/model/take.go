package model

import "slices"

// Take answers a call of cost units on a record in a state at now, and returns the state
// that it leaves.
func (l Limit) Take(s State, now, cost int64) (Answer, State) {
	if !l.bucket() {
		return l.count(s, now, cost)
	}
	a, after := s.Take(now, Call{Interval: l.Interval, Burst: l.Burst, Cost: cost})
	if l.Algorithm == Leaky && a.Allowed && cost >= 0 {
		a.Delay = s.Debt(now)
	}
	return a, after
}

// Peek answers whether the cost would pass, and what is left without it.
func (l Limit) Peek(s State, now, cost int64) Answer {
	a, _ := l.Take(s, now, cost)
	if a.Allowed && cost > 0 {
		rest, _ := l.Take(s, now, 0)
		a.Remaining, a.Reset = rest.Remaining, rest.Reset
	}
	return a
}

// Refund gives back units of a charge that was made at charged: to the window that it was
// made in, or to what the log keeps of that time.
func (l Limit) Refund(s State, now, back, charged int64) (Answer, State) {
	if l.Algorithm != Sliding && l.Algorithm != Log {
		return l.Take(s, now, -back)
	}
	at := charged
	if l.Algorithm == Sliding {
		at = l.start(charged)
	}
	s = l.Meaning(s, now)
	out := slices.Clone(s.kept)
	for i := range out {
		if out[i].at == at {
			out[i].units -= min(back, out[i].units)
		}
	}
	s = l.Meaning(State{kept: out}, now)
	a, _ := l.Take(s, now, 0)
	a.Allowed, a.Retry = true, 0
	return a, s
}
