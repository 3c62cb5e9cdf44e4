package check

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"limitd/jepsen/history"
)

// driftPerMille is how much faster than the harness's clock cluster time may run, in
// thousandths: what the limiter allows for clocks of hardware.
const driftPerMille = 1

// checkOverAdmissionWall: for each key and each limit (T, burst) on it, and every
// interval [a, b] of the harness's time,
//
//	T * charges of admissions with [invoke, return] in [a, b]
//	  <=  T*burst + (b-a)*(1 + drift) + given back in [a, b]
//
// Given back is n*T for each refund of n units, of its own limit, and T*burst (a
// bucket cannot lack more) for each DEL that found something, and each flush, whose
// [invoke, return] touches [a, b]; of one that is in doubt the return is the end of
// time. Admissions in doubt do not count. What is given back is counted whether or
// not there was room, so the bound errs towards silence.
//
// It trusts clients alone, and their clock. a need only be an invocation and b a
// return: a goes down over a tree that keeps for each b the sum less the bound, so
// it costs n log n.
func checkOverAdmissionWall(e *evidence, r *result) {
	groups := map[key]map[limit][]*op{}
	gifts := map[key][]*op{}
	var floods []*op
	for _, o := range e.ops {
		switch {
		case o.typ == history.Fail:
		case o.admitted():
			k := o.keys[0]
			if groups[k] == nil {
				groups[k] = map[limit][]*op{}
			}
			l := limit{o.call.Interval, o.call.Burst}
			groups[k][l] = append(groups[k][l], o)
		case o.verb == throttle && o.call.Cost < 0, o.verb == reset && !o.foundNothing():
			for _, k := range o.keys {
				gifts[k] = append(gifts[k], o)
			}
		case o.verb == flush || o.verb == flushAll:
			floods = append(floods, o)
		}
	}
	for _, k := range slices.SortedFunc(keysOf(groups), compareKeys) {
		for l, admitted := range groups[k] {
			given := slices.Clone(gifts[k])
			for _, o := range floods {
				if o.verb == flushAll || uint8(o.invoke.NS) == k.ns {
					given = append(given, o)
				}
			}
			r.Checked += int64(len(admitted))
			e.judgeWall(k, l, admitted, given, r)
		}
	}
}

// foundNothing says that a DEL was answered 0: no key held state.
func (o *op) foundNothing() bool {
	return o.typ == history.OK && len(o.reply) == 1 && o.reply[0] == 0
}

func keysOf[V any](m map[key]V) func(func(key) bool) {
	return func(yield func(key) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// run of the harness's time as cluster time at most: t*(1 + drift).
func stretched(t int64) int64 { return t + (t*driftPerMille+999)/1000 }

func (e *evidence) judgeWall(k key, l limit, admitted, given []*op, r *result) {
	type change struct {
		at, from, by int64 // when a comes down to at, sums to b >= from change by that
		op           *op   // an admission
	}
	room := int64(math.MaxInt64) // for sums
	add := func(n int64) bool {
		if n < 0 || n > room {
			return false
		}
		room -= n
		return true
	}
	var changes []change
	var ends []int64
	fits := true
	for _, o := range admitted {
		fits = fits && l.interval <= math.MaxInt64/o.call.Cost && add(l.interval*o.call.Cost)
		changes = append(changes, change{o.from(), o.to(), l.interval * o.call.Cost, o})
		ends = append(ends, o.to())
	}
	tau := l.interval * l.burst // fits: it is below 2^62
	for _, o := range given {
		back := tau
		if o.verb == throttle {
			back = -o.call.Interval * o.call.Cost
		}
		fits = fits && add(back)
		changes = append(changes, change{o.to(), o.from(), -back, nil})
	}
	if !fits {
		r.open(Example{Says: "the charges of this key do not fit into 63 bits of nanoseconds", Key: k.String()})
		return
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	tree := newMaxTree(len(ends), func(i int) int64 { return -stretched(ends[i]) })
	sort.SliceStable(changes, func(i, j int) bool {
		if changes[i].at != changes[j].at {
			return changes[i].at > changes[j].at
		}
		return changes[i].op == nil && changes[j].op != nil
	})
	for _, c := range changes {
		first := sort.Search(len(ends), func(i int) bool { return ends[i] >= c.from })
		tree.add(first, c.by)
		if c.op == nil {
			continue
		}
		most, at := tree.max(sort.Search(len(ends), func(i int) bool { return ends[i] >= c.at }))
		if excess := most + stretched(c.at) - tau; excess > 0 {
			x := Example{
				Says: fmt.Sprintf("from %d to %d ns of the run clients saw %d ns worth of units more than burst %d at one each %d ns", c.at, ends[at], excess, l.burst, l.interval),
				Key:  k.String(), Node: c.op.invoke.Node,
			}
			for _, o := range admitted {
				if o.from() >= c.at && o.to() <= ends[at] {
					x.Events = append(x.Events, o.events()...)
				}
			}
			r.bad(x)
			return // one for each key and limit: the latest beginning
		}
	}
}
