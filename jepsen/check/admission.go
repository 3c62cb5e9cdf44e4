package check

import (
	"fmt"
	"math/big"
)

// limit is what calls are charged under.
type limit struct{ interval, burst int64 }

// checkOverAdmission: for each key and each limit (T, burst) on it, over the decisions
// i..j that took effect, in their order, with times t and charges c,
//
//	T * sum of c(i..j)  -  time given back (i..j)  <=  T*burst + t(j) - t(i)
//
// A refund of n units gives n*T of its own limit back, whatever the bucket had room
// for, and DEL and flush all that was charged before. For each j the worst i is kept,
// so it costs one pass. It trusts the traces for order and times; no formula of the
// limiter is used.
func checkOverAdmission(e *evidence, r *result) {
	type group struct {
		key
		limit
	}
	type sum struct {
		charged big.Int // T * charges less refunds, so far
		least   big.Int // of charged - t, before a charge: the worst place to begin
		from    *decision
	}
	sums := map[group]*sum{}
	of := map[key][]limit{}
	over := new(big.Int)
	for _, d := range e.agreed() {
		if !d.tookEffect() || !d.changes() {
			continue
		}
		c, at := d.call, big.NewInt(d.row.At)
		switch c.Op {
		case "flush", "flushall":
			for k := range of {
				if c.Op == "flushall" || k.ns == c.NS {
					for _, l := range of[k] {
						delete(sums, group{k, l})
					}
					delete(of, k)
				}
			}
			continue
		case "reset":
			for _, k := range d.keys() {
				for _, l := range of[k] {
					delete(sums, group{k, l})
				}
				delete(of, k)
			}
			continue
		}
		r.Checked++
		k := key{c.NS, c.Key}
		time := new(big.Int).Mul(big.NewInt(c.Interval), big.NewInt(c.Cost))
		if c.Cost < 0 {
			for _, l := range of[k] {
				s := sums[group{k, l}]
				s.charged.Add(&s.charged, time)
			}
			continue
		}
		g := group{k, limit{c.Interval, c.Burst}}
		s := sums[g]
		if s == nil {
			s = &sum{}
			sums[g] = s
			of[k] = append(of[k], g.limit)
		}
		now := new(big.Int).Sub(&s.charged, at)
		if s.from == nil || now.Cmp(&s.least) < 0 {
			s.least.Set(now)
			s.from = d
		}
		s.charged.Add(&s.charged, time)
		used := now.Sub(now.Add(now, time), &s.least)
		tau := new(big.Int).Mul(big.NewInt(c.Interval), big.NewInt(c.Burst))
		if excess := used.Sub(used, tau); excess.Sign() > 0 {
			units := new(big.Int).Add(excess, big.NewInt(c.Interval-1))
			over.Add(over, units.Quo(units, big.NewInt(c.Interval)))
			x := Example{
				Says: fmt.Sprintf("in the %d ns from %s to %s, %v ns worth of units were admitted above burst %d at one each %d ns", d.row.At-s.from.row.At, s.from.row, d.row, excess, c.Burst, c.Interval),
				Key:  k.String(), Node: d.row.Node, Rows: lines(s.from.row, d.row, d.round.entry.row),
			}
			for _, y := range []*decision{s.from, d} {
				if y.op != nil {
					x.Events = append(x.Events, y.op.events()...)
				}
			}
			r.bad(x)
			s.least.Sub(&s.charged, at) // each excess once
			s.from = nil
		}
	}
	n := int64(1<<63 - 1)
	if over.IsInt64() {
		n = over.Int64()
	}
	r.figure("over_admitted_units", n)
}
