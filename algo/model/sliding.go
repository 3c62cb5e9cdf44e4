package model

import "math/big"

// Sliding is a sliding window counter: a list of all that was ever admitted, of which
// the units of the window before now's count by as much of that window as lies in
// the last period. The zero value is empty.
type Sliding struct {
	all events
}

// Take asks for cost units at time now, for at most limit in a period of window ns,
// windows being counted from 1970. Times must not decrease. A cost of 0 asks whether
// not more than limit are used; a negative cost takes them back, from the window of
// now first.
func (s *Sliding) Take(now, window, limit, cost *big.Int) Answer {
	a := Answer{Wait: new(big.Int), Delay: new(big.Int)}
	top := new(big.Rat).SetInt(limit)
	fits := func(t *big.Int) bool {
		return new(big.Rat).Add(s.used(t, window), new(big.Rat).SetInt(cost)).Cmp(top) <= 0
	}
	this := index(now, window)
	twoOn := new(big.Int).Mul(add(this, big.NewInt(2)), window) // whatever was admitted is over
	switch {
	case cost.Sign() < 0:
		a.Allowed = true
		left := new(big.Int).Neg(cost)
		for _, k := range []*big.Int{this, sub(this, big.NewInt(1))} {
			left = s.all.giveBack(left, s.in(k, window))
		}
	case cost.Cmp(limit) > 0:
		a.Wait = nil
	case fits(now):
		a.Allowed = true
		if cost.Sign() > 0 {
			s.all = append(s.all, event{now, cost})
		}
	default: // what is used only becomes less
		a.Wait = sub(first(now, twoOn, fits), now)
	}
	room := floor(new(big.Rat).Sub(top, s.used(now, window)))
	a.Remaining = maxInt(room, new(big.Int))
	a.Reset = sub(first(now, twoOn, func(t *big.Int) bool { return s.used(t, window).Sign() == 0 }), now)
	return a
}

// used is what counts at t.
func (s *Sliding) used(t, window *big.Int) *big.Rat {
	k := index(t, window)
	into := sub(t, new(big.Int).Mul(k, window))
	share := new(big.Rat).SetFrac(sub(window, into), window)
	used := new(big.Rat).SetInt(s.all.sum(s.in(sub(k, big.NewInt(1)), window)))
	used.Mul(used, share)
	return used.Add(used, new(big.Rat).SetInt(s.all.sum(s.in(k, window))))
}

func (s *Sliding) in(k, window *big.Int) func(at *big.Int) bool {
	return func(at *big.Int) bool { return index(at, window).Cmp(k) == 0 }
}

// index is the number of the window that t lies in: floor(t / window).
func index(t, window *big.Int) *big.Int {
	k := new(big.Int)
	k.DivMod(t, window, new(big.Int)) // Euclidean: the rest is never below 0
	return k
}

// first is the first time in from to to at which a condition holds, that holds at to
// and from when on it first did.
func first(from, to *big.Int, holds func(t *big.Int) bool) *big.Int {
	lo, hi := from, to
	for lo.Cmp(hi) < 0 {
		mid := add(lo, hi)
		if mid.Rsh(mid, 1); holds(mid) {
			hi = mid
		} else {
			lo = add(mid, big.NewInt(1))
		}
	}
	return lo
}
