package model

import "math/big"

// event is an admission: when, and how many units.
type event struct {
	at    *big.Int
	units *big.Int
}

// events are admissions, oldest first.
type events []event

// sum counts the units of those that count says so of.
func (e events) sum(count func(at *big.Int) bool) *big.Int {
	sum := new(big.Int)
	for _, ev := range e {
		if count(ev.at) {
			sum.Add(sum, ev.units)
		}
	}
	return sum
}

// giveBack takes units off the newest of those that count says so of, and returns
// what is left to give back.
func (e events) giveBack(units *big.Int, count func(at *big.Int) bool) *big.Int {
	left := new(big.Int).Set(units)
	for i := len(e) - 1; i >= 0 && left.Sign() > 0; i-- {
		if !count(e[i].at) {
			continue
		}
		part := new(big.Int).Set(e[i].units)
		if part.Cmp(left) > 0 {
			part.Set(left)
		}
		e[i].units = new(big.Int).Sub(e[i].units, part)
		left.Sub(left, part)
	}
	return left
}

// atLeast0 is limit - used, or 0.
func atLeast0(limit, used *big.Int) *big.Int {
	return maxInt(new(big.Int), new(big.Int).Sub(limit, used))
}

func add(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
