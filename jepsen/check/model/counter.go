package model

import (
	"fmt"
	"math/big"
	"slices"
)

// The counters, with W the period and windows of that length from 1970 on, or of a calendar.
//
//	fixed    used = the units of the window of now
//	log      used = the units that were admitted in (now-W, now]
//	sliding  used = the units of the window of now, and those of the one before by the part of it that lies in (now-W, now]
//
//	cost > 0: denied if used + cost > limit (equal is allowed), else kept
//	cost = 0: denied if used > limit; nothing is stored
//	cost < 0: units come back, the newest first: of a fixed counter those of the window, of the others those that count
//
// A wait is the time until the call would pass, if there were no others. A record means
// nothing when nothing that it keeps can count any more.
//
// A follower's now may be before the time of its state. What is kept counts then as if
// it were a moment ago.

// start of the window of t, also before 1970.
func (id Identity) start(t int64) int64 {
	if id.Calendar.Unit > 0 {
		start, _ := id.Calendar.window(t)
		return start
	}
	into := t % id.Period
	if into < 0 {
		into += id.Period
	}
	return t - into
}

// end of the window of t.
func (id Identity) end(t int64) int64 {
	if id.Calendar.Unit > 0 {
		_, end := id.Calendar.window(t)
		return end
	}
	return id.start(t) + id.Period
}

// Window is the one of a counter that t lies in, from start to before end.
func (id Identity) Window(t int64) (start, end int64) { return id.start(t), id.end(t) }

// Shortest is how long a window of a counter is at least, ns.
func (id Identity) Shortest() int64 {
	if id.Calendar.Unit > 0 {
		return shortestWindow
	}
	return id.Period
}

// weight of a unit in sums: what counts in part is counted in whole numbers.
func (id Identity) weight() int64 { return max(id.Period, 1) }

// Meaning is what of the state counts at now, or can count later, in one form.
func (id Identity) Meaning(s State, now int64) State {
	if id.bucket() {
		if s.debt(now).Sign() == 0 {
			return State{}
		}
		return State{tat: s.tat}
	}
	var out State
	for _, k := range s.kept {
		if k.units == 0 || id.over(k) <= now {
			continue
		}
		if n := len(out.kept); n > 0 && out.kept[n-1].at == k.at {
			out.kept[n-1].units += k.units
			continue
		}
		out.kept = append(out.kept, k)
	}
	return out
}

// over is the time from which units count no more.
func (id Identity) over(k kept) int64 {
	switch id.Algorithm {
	case Sliding:
		return k.at + 2*id.Period
	case Log:
		return k.at + id.Period
	}
	return k.at
}

// End is when a state means nothing any more; false: it means nothing at now.
func (id Identity) End(s State, now int64) (int64, bool) {
	s = id.Meaning(s, now)
	if n := len(s.kept); n > 0 {
		return id.over(s.kept[n-1]), true
	}
	if s.tat == nil {
		return now, false
	}
	return clamp(s.tat), true
}

// Left is how long a state means something, ns from now.
func (id Identity) Left(s State, now int64) int64 {
	end, _ := id.End(s, now)
	return end - now
}

// Same says that two states mean the same at now.
func (id Identity) Same(a, b State, now int64) bool {
	a, b = id.Meaning(a, now), id.Meaning(b, now)
	if (a.tat == nil) != (b.tat == nil) || a.tat != nil && a.tat.Cmp(b.tat) != 0 {
		return false
	}
	return slices.Equal(a.kept, b.kept)
}

// Text is what a state means at now, in words that are the same for the same.
func (id Identity) Text(s State, now int64) string {
	s = id.Meaning(s, now)
	switch {
	case s.tat != nil:
		return "tat " + s.tat.String()
	case s.kept != nil:
		return fmt.Sprint(s.kept)
	}
	return "none"
}

// used is what counts at t, times the weight of a unit.
func (id Identity) used(s State, t int64) *big.Int {
	w := big.NewInt(id.weight())
	sum := new(big.Int)
	newest := int64(0)
	if n := len(s.kept); n > 0 {
		newest = s.kept[n-1].at
	}
	for _, k := range s.kept {
		part := new(big.Int).Set(w)
		switch id.Algorithm {
		case Fixed, Log:
			if id.over(k) <= t {
				continue
			}
		case Sliding: // a time before the newest window counts as its beginning
			if out := max(t, newest) - k.at - id.Period; out > 0 {
				part.Sub(w, big.NewInt(min(out, id.Period)))
			}
		}
		sum.Add(sum, part.Mul(part, big.NewInt(k.units)))
	}
	return sum
}

// count answers a call on a counter, and returns the state that it leaves.
func (l Limit) count(s State, now, cost int64) (Answer, State) {
	s = l.Meaning(s, now)
	w := big.NewInt(l.weight())
	top := new(big.Int).Mul(big.NewInt(l.Burst), w)
	price := new(big.Int).Mul(big.NewInt(cost), w)
	fits := func(t int64) bool {
		sum := l.used(s, t)
		return sum.Add(sum, price).Cmp(top) <= 0
	}
	a := Answer{Allowed: true}
	switch {
	case cost < 0:
		s = l.giveBack(s, -cost)
	case cost > l.Burst:
		a.Allowed, a.Retry = false, Never
	case !fits(now):
		a.Allowed, a.Retry = false, first(now, l.last(s, now), fits)-now
	case cost > 0:
		s = l.keep(s, now, cost)
	}
	if room := top.Sub(top, l.used(s, now)); room.Sign() > 0 {
		a.Remaining = clamp(room.Quo(room, w))
	}
	a.Reset = l.Left(s, now)
	return a, s
}

// last is a time at which nothing that is kept counts any more.
func (id Identity) last(s State, now int64) int64 {
	end, _ := id.End(s, now)
	return end
}

// first is the first time in from to to at which a condition holds, that holds at to and
// from when on it first did.
func first(from, to int64, holds func(int64) bool) int64 {
	for from < to {
		if mid := from + (to-from)/2; holds(mid) {
			to = mid
		} else {
			from = mid + 1
		}
	}
	return from
}

// keep adds units that are admitted at now.
func (id Identity) keep(s State, now, cost int64) State {
	at := now
	if n := len(s.kept); n > 0 && id.Algorithm == Log {
		at = max(now, s.kept[n-1].at)
	}
	switch id.Algorithm {
	case Fixed:
		at = id.end(now)
	case Sliding:
		at = id.start(now)
	}
	out := slices.Clone(s.kept)
	if n := len(out); n > 0 && out[n-1].at >= at {
		out[n-1].units += cost
	} else {
		out = append(out, kept{at, cost})
	}
	return State{kept: out}
}

// giveBack takes units off the newest that are kept.
func (id Identity) giveBack(s State, back int64) State {
	out := slices.Clone(s.kept)
	for n := len(out); n > 0 && back > 0; n-- {
		k := &out[n-1]
		part := min(back, k.units)
		k.units -= part
		if back -= part; k.units == 0 {
			out = out[:n-1]
		}
	}
	return State{kept: out}
}
