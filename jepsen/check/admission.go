package check

import (
	"fmt"
	"math/big"

	"limitd/jepsen/check/model"
)

// checkOverAdmission: for each record and each limit on it, over the decisions i..j that
// took effect, in their order, with times t and charges c,
//
//	buckets:  T * sum of c(i..j)  -  time given back (i..j)  <=  T*burst + t(j) - t(i)
//	log:      sum of c with t in (t(j)-W, t(j)]  -  given back there  <=  limit
//	sliding:  the same  <=  2*limit - 1, and  <=  limit  in each window of W counted from 1970
//	fixed:    <=  limit  in each window, of the calendar too
//
// (What sliding admits at worst, algo/worst.go proves.) A refund of n units gives n*T of its
// own limit back, whatever the bucket had room for, or n units, and DEL and flush all that
// was charged before. A call under an ID that was answered as an earlier one charges
// nothing. For each j of a bucket the worst i is kept, so it costs one pass. It trusts the
// traces for order and times; no formula of the limiter is used.
func checkOverAdmission(e *evidence, r *result) {
	a := admissions{r: r, of: map[key][]group{}, sums: map[group]sum{}}
	for _, d := range e.agreed() {
		if !d.tookEffect() || !d.changes() {
			continue
		}
		switch d.call.Op {
		case "flush", "flushall":
			for k := range a.of {
				if d.call.Op == "flushall" || k.ns == d.call.NS {
					a.forget(k)
				}
			}
			continue
		case "reset":
			for _, k := range d.keys() {
				a.forget(k)
			}
			continue
		}
		for i := range d.parts {
			if d.parts[i].cost != 0 && !(d.parts[i].cost < 0 && d.call.Repeated) {
				r.Checked++
				a.take(d, &d.parts[i])
			}
		}
	}
	r.figure("over_admitted_units", a.units())
}

// group is a record under one limit: each is held to its own.
type group struct {
	record model.Record
	limit  model.Limit
}

func (g group) key() key { return key{g.record.NS, g.record.Key} }

// sum is what was charged of a group.
type sum interface {
	// add a charge of a decision, or what one gives back, and tell how many units more
	// than there may be were admitted since a decision; 0: none.
	add(d *decision, units int64) (excess *big.Int, since *decision)
}

type admissions struct {
	r    *result
	of   map[key][]group
	sums map[group]sum
	over big.Int
}

func (a *admissions) forget(k key) {
	for _, g := range a.of[k] {
		delete(a.sums, g)
	}
	delete(a.of, k)
}

func (a *admissions) units() int64 {
	if a.over.IsInt64() {
		return a.over.Int64()
	}
	return 1<<63 - 1
}

func (a *admissions) take(d *decision, p *part) {
	own := group{p.record, p.limit}
	k := own.key()
	if p.cost < 0 {
		for _, g := range a.of[k] {
			if g.record == p.record {
				units := p.cost
				if g.limit.Interval != p.limit.Interval { // the time of the limit that it was given back under
					units = -model.Ceil(-p.cost*p.limit.Interval, g.limit.Interval)
				}
				a.sums[g].add(d, units)
			}
		}
		return
	}
	s := a.sums[own]
	if s == nil {
		s = newSum(p.limit)
		a.sums[own] = s
		a.of[k] = append(a.of[k], own)
	}
	excess, from := s.add(d, p.cost)
	if excess.Sign() <= 0 {
		return
	}
	a.over.Add(&a.over, excess)
	x := Example{
		Says: fmt.Sprintf("in the %d ns from %s to %s, %v units were admitted above what %s allows", d.row.At-from.row.At, from.row, d.row, excess, describe(p.limit)),
		Key:  k.String(), Node: d.row.Node, Rows: lines(from.row, d.row, d.round.entry.row),
	}
	for _, y := range []*decision{from, d} {
		if y.op != nil {
			x.Events = append(x.Events, y.op.events()...)
		}
	}
	a.r.bad(x)
}

func describe(l model.Limit) string {
	switch l.Algorithm {
	case model.Fixed, model.Sliding, model.Log:
		return fmt.Sprintf("%s with %d", l.Identity, l.Burst)
	}
	return fmt.Sprintf("burst %d at one each %d ns", l.Burst, l.Interval)
}

func newSum(l model.Limit) sum {
	switch l.Algorithm {
	case model.Fixed, model.Sliding, model.Log:
		return &windowSum{limit: l}
	}
	return &bucketSum{limit: l}
}

// bucketSum keeps the worst place to begin.
type bucketSum struct {
	limit   model.Limit
	charged big.Int // T * charges less refunds, so far
	least   big.Int // of charged - t, before a charge
	from    *decision
}

func (s *bucketSum) add(d *decision, units int64) (*big.Int, *decision) {
	at := big.NewInt(d.row.At)
	time := new(big.Int).Mul(big.NewInt(s.limit.Interval), big.NewInt(units))
	if units < 0 {
		s.charged.Add(&s.charged, time)
		return new(big.Int), nil
	}
	now := new(big.Int).Sub(&s.charged, at)
	if s.from == nil || now.Cmp(&s.least) < 0 {
		s.least.Set(now)
		s.from = d
	}
	from := s.from
	s.charged.Add(&s.charged, time)
	used := now.Sub(now.Add(now, time), &s.least)
	tau := new(big.Int).Mul(big.NewInt(s.limit.Interval), big.NewInt(s.limit.Burst))
	excess := used.Sub(used, tau)
	if excess.Sign() > 0 {
		s.least.Sub(&s.charged, at) // each excess once
		s.from = nil
	}
	excess.Add(excess, big.NewInt(s.limit.Interval-1))
	return excess.Div(excess, big.NewInt(s.limit.Interval)), from
}
