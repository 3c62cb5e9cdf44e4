// Package model is what the limiters should answer, written for certainty and not
// for speed: a token bucket that counts tokens as exact rationals, a queue that
// keeps its line, windows that keep a list of all that was ever admitted, calendars
// that watch the clocks. It shares nothing with package algo, neither code nor a
// formula (algo keeps a time, a count, a boundary), so that a mistake in one is not
// a mistake in the other. Tests compare the two.
package model

import "math/big"

// Answer is a model's answer to one call.
type Answer struct {
	Allowed   bool
	Remaining *big.Int // whole tokens (units, places) left, not below 0
	Wait      *big.Int // ns until the call would pass; 0 if it did, nil if it never can
	Reset     *big.Int // ns until the bucket is full, the line empty, nothing used
	Delay     *big.Int // ns that an accepted call waits in the line; nil, 0: no line
}

// Bucket is a token bucket. The zero value is full.
type Bucket struct {
	missing  *big.Rat // tokens below capacity, in tokens of interval ns each; nil: 0
	interval *big.Rat
	last     *big.Int // ns
}

// Take asks for cost tokens at time now from a bucket of capacity tokens that
// gains one token each interval ns. Times must not decrease. A cost of 0 asks
// whether the bucket is in credit, a negative cost puts tokens back.
//
// The interval and capacity may differ from call to call. What is kept then is
// the time until the bucket is full; the tokens that it lacks are counted anew,
// and may be more than there is room for.
func (b *Bucket) Take(now, interval, capacity, cost *big.Int) Answer {
	b.reprice(new(big.Rat).SetInt(interval))
	b.refill(now)

	top := new(big.Rat).SetInt(capacity)
	price := new(big.Rat).SetInt(cost)
	tokens := new(big.Rat).Sub(top, b.missing)

	a := Answer{Wait: new(big.Int)}
	switch {
	case cost.Sign() < 0:
		a.Allowed = true
		b.missing.Add(b.missing, price)
		if b.missing.Sign() < 0 {
			b.missing.SetInt64(0)
		}
	case tokens.Cmp(price) >= 0:
		a.Allowed = true
		b.missing.Add(b.missing, price)
	case price.Cmp(top) > 0:
		a.Wait = nil
	default:
		a.Wait = ceil(new(big.Rat).Mul(price.Sub(price, tokens), b.interval))
	}
	a.Remaining = floor(top.Sub(top, b.missing))
	if a.Remaining.Sign() < 0 {
		a.Remaining.SetInt64(0)
	}
	a.Reset = ceil(new(big.Rat).Mul(b.missing, b.interval))
	return a
}

func (b *Bucket) reprice(interval *big.Rat) {
	if b.missing == nil {
		b.missing = new(big.Rat)
	} else {
		untilFull := b.missing.Mul(b.missing, b.interval)
		b.missing = untilFull.Quo(untilFull, interval)
	}
	b.interval = interval
}

func (b *Bucket) refill(now *big.Int) {
	if b.last != nil {
		elapsed := new(big.Rat).SetInt(new(big.Int).Sub(now, b.last))
		b.missing.Sub(b.missing, elapsed.Quo(elapsed, b.interval))
		if b.missing.Sign() < 0 {
			b.missing.SetInt64(0)
		}
	}
	b.last = new(big.Int).Set(now)
}

// floor and ceil round to minus and plus infinity; Int.Div does the former for
// the positive denominators of a Rat.
func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom())
}

func ceil(r *big.Rat) *big.Int {
	neg := new(big.Rat).Neg(r)
	return new(big.Int).Neg(floor(neg))
}
