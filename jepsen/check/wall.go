package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
)

// driftPerMille is how much faster than the harness's clock cluster time may run, in
// thousandths: what the limiter allows for clocks of hardware.
const driftPerMille = 1

// checkOverAdmissionWall: for each record and each limit on it, and every interval [a, b]
// of the harness's time, with c the charges of admissions with [invoke, return] in [a, b],
//
//	buckets:   T * sum of c  <=  T*burst + (b-a)*(1 + drift) + given back in [a, b]
//	counters:  sum of c  <=  limit (log), 2*limit - 1 (sliding), 2*limit (fixed) + given back in [a, b],  if (b-a)*(1 + drift) < W
//
// Given back is n*T for each refund of n units, of its own limit, and T*burst (a
// bucket cannot lack more) for each DEL that found something, and each flush, whose
// [invoke, return] touches [a, b]; of one that is in doubt the return is the end of
// time. Of counters it is n units, and as much as the bound. Admissions in doubt do not
// count. What is given back is counted whether or not there was room, so the bound errs
// towards silence. Under an ID that was named in several calls one is charged, which may
// be any of them up to the first that was answered so.
//
// It trusts clients alone, and their clock. a need only be an invocation and b a
// return: a goes down over a tree that keeps for each b the sum less the bound, so
// it costs n log n.
func checkOverAdmissionWall(e *evidence, r *result) {
	groups := map[model.Record]map[model.Limit][]admission{}
	gifts := map[model.Record][]gift{}
	resets := map[key][]*op{}
	var floods []*op
	asked := map[model.ID]int64{} // when an ID was first named
	told := map[string]bool{}
	for _, o := range e.ops {
		first := o.from()
		if o.id != "" && o.verb != other {
			id := model.ID{NS: uint8(o.invoke.NS), Token: o.id}
			if t, ok := asked[id]; ok {
				first = t
			} else {
				asked[id] = first
			}
			if o.admitted() {
				again := fmt.Sprint(id, o.reply) // the time of the decision is part of the answer
				if told[again] {
					continue
				}
				told[again] = true
			}
		}
		switch {
		case o.typ == history.Fail:
		case o.admitted():
			for _, p := range o.parts {
				if p.cost > 0 {
					if groups[p.record] == nil {
						groups[p.record] = map[model.Limit][]admission{}
					}
					groups[p.record][p.limit] = append(groups[p.record][p.limit], admission{o, first, o.to(), p.cost})
				}
			}
		case o.refunds():
			p := o.parts[0]
			gifts[p.record] = append(gifts[p.record], gift{o, -p.cost, p.limit.Interval})
		case o.verb == reset && !o.foundNothing():
			for _, k := range o.keys {
				resets[k] = append(resets[k], o)
			}
		case o.verb == flush || o.verb == flushAll:
			floods = append(floods, o)
		}
	}
	for _, rec := range slices.SortedFunc(maps.Keys(groups), compareRecords) {
		for l, admitted := range groups[rec] {
			k := key{rec.NS, rec.Key}
			given := slices.Clone(gifts[rec])
			for _, o := range resets[k] {
				given = append(given, gift{o: o})
			}
			for _, o := range floods {
				if o.verb == flushAll || uint8(o.invoke.NS) == k.ns {
					given = append(given, gift{o: o})
				}
			}
			r.Checked += int64(len(admitted))
			if l.Interval > 0 {
				e.judgeWall(k, l, admitted, given, r)
			} else {
				judgeWindows(k, l, admitted, given, r)
			}
		}
	}
}

// admission is what clients saw admitted: charged between from and to.
type admission struct {
	op       *op
	from, to int64
	cost     int64
}

// gift is what gave back: units, or 0: all.
type gift struct {
	o        *op
	units    int64
	interval int64 // of the limit that they were given back under
}

// foundNothing says that a DEL was answered 0: no key held state.
func (o *op) foundNothing() bool {
	return o.typ == history.OK && len(o.reply) == 1 && o.reply[0] == 0
}

// run of the harness's time as cluster time at most: t*(1 + drift).
func stretched(t int64) int64 { return t + (t*driftPerMille+999)/1000 }

func (e *evidence) judgeWall(k key, l model.Limit, admitted []admission, given []gift, r *result) {
	type change struct {
		at, from, by int64      // when a comes down to at, sums to b >= from change by that
		op           *admission // nil: a gift
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
	for i := range admitted {
		o := &admitted[i]
		fits = fits && l.Interval <= math.MaxInt64/o.cost && add(l.Interval*o.cost)
		changes = append(changes, change{o.from, o.to, l.Interval * o.cost, o})
		ends = append(ends, o.to)
	}
	tau := l.Interval * l.Burst // fits: it is below 2^62
	for _, g := range given {
		back := tau
		if g.units > 0 {
			back = g.interval * g.units
		}
		fits = fits && add(back)
		changes = append(changes, change{g.o.to(), g.o.from(), -back, nil})
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
				Says: fmt.Sprintf("from %d to %d ns of the run clients saw %d ns worth of units more than burst %d at one each %d ns", c.at, ends[at], excess, l.Burst, l.Interval),
				Key:  k.String(), Node: c.op.op.invoke.Node,
			}
			for _, o := range admitted {
				if o.from >= c.at && o.to <= ends[at] {
					x.Events = append(x.Events, o.op.events()...)
				}
			}
			r.bad(x)
			return // one for each key and limit: the latest beginning
		}
	}
}
