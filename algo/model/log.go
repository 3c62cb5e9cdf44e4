package model

import "math/big"

// Log is an exact sliding log: a list of all that was ever admitted. The zero value
// is empty.
type Log struct {
	all events
}

// Take asks for cost units at time now, where at most limit units may be admitted in
// any window ns, the first excluded, the last included. Times must not decrease. A
// cost of 0 asks whether not more than limit are; a negative cost takes them back
// from the newest.
func (l *Log) Take(now, window, limit, cost *big.Int) Answer {
	counts := func(t *big.Int) func(at *big.Int) bool {
		return func(at *big.Int) bool { return at.Cmp(sub(t, window)) > 0 }
	}
	fits := func(t *big.Int) bool { return add(l.all.sum(counts(t)), cost).Cmp(limit) <= 0 }
	a := Answer{Wait: new(big.Int), Reset: new(big.Int), Delay: new(big.Int)}
	switch {
	case cost.Sign() < 0:
		a.Allowed = true
		l.all.giveBack(new(big.Int).Neg(cost), counts(now))
	case cost.Cmp(limit) > 0:
		a.Wait = nil
	case fits(now):
		a.Allowed = true
		if cost.Sign() > 0 {
			l.all = append(l.all, event{now, cost})
		}
	default: // an answer changes only when an event leaves the window
		for _, ev := range l.all {
			if gone := add(ev.at, window); gone.Cmp(now) > 0 && fits(gone) {
				a.Wait = sub(gone, now)
				break
			}
		}
	}
	a.Remaining = atLeast0(limit, l.all.sum(counts(now)))
	for _, ev := range l.all {
		if ev.units.Sign() > 0 && counts(now)(ev.at) {
			a.Reset = sub(add(ev.at, window), now)
		}
	}
	return a
}
