package algo

import (
	"encoding/binary"
	"math/bits"
)

// The sliding window counter: two windows of the period W, counted from the
// epoch, of which the older one weighs as much as of it lies within W before now.
//
// State: 24 bytes, little endian: the start of the current window in ns of
// cluster time, the units admitted in it (cur), those in the window before (prev).
// With e = time into the current window, in exact integers of 128 bits:
//
//	allowed = prev*(W-e) + (cur+cost)*W <= limit*W
//
// The estimate assumes that the older window's units came evenly. The record
// means nothing when both windows have passed.

const slidingSize = 24

// slidingState is the record as it is at some time in the window.
type slidingState struct {
	start, cur, prev int64
}

// readSliding reads a state and turns it over to now. A state of any other
// length, or with numbers that no charge makes, was not written here: it denies
// until its two windows have passed, or the key is reset.
func readSliding(state []byte, now, period int64) (s slidingState, ok bool) {
	at := now - mod(now, period)
	if len(state) == 0 {
		return slidingState{start: at}, true
	}
	if len(state) != slidingSize {
		return slidingState{start: at}, false
	}
	s = slidingState{
		start: int64(binary.LittleEndian.Uint64(state)),
		cur:   int64(binary.LittleEndian.Uint64(state[8:])),
		prev:  int64(binary.LittleEndian.Uint64(state[16:])),
	}
	if s.cur < 0 || s.prev < 0 || s.cur > maxUnits || s.prev > maxUnits ||
		s.start < -maxSpan || s.start >= maxSpan || s.start%period != 0 {
		return s, false
	}
	switch {
	case s.start >= at: // later only where now is an estimate: cluster time does not go back
	case at-s.start == period:
		s = slidingState{start: at, prev: s.cur}
	default:
		s = slidingState{start: at}
	}
	return s, true
}

// sliding fills in v and e, which are zero.
func (l Limit) sliding(v *Verdict, e *Effect, state []byte, now, cost int64, buf []byte) {
	w := l.period
	v.Limit = l.Burst
	if !decidable(now, 0) {
		v.RetryAfter = Never
		return
	}
	s, ok := readSliding(state, now, w)
	if !ok {
		l.unreadable(v, cost)
		return
	}
	into := max(0, now-s.start)
	switch {
	case cost < 0:
		v.Allowed = true
		back := units(-cost, s.cur+s.prev) // at most what is used
		s.cur, back = s.cur-min(s.cur, back), back-min(s.cur, back)
		s.prev -= back
		e.replaceSliding(s, now, w, buf)
	case cost > l.Burst:
		v.RetryAfter = Never
	case !fitsWindow(s.prev, w-into, s.cur+cost, l.Burst, w):
		v.RetryAfter = s.wait(now, w, l.Burst-cost)
	case cost == 0:
		v.Allowed = true
	default:
		v.Allowed = true
		s.cur += cost
		e.replaceSliding(s, now, w, buf)
	}
	v.Remaining = roomInWindow(s.prev, w-into, s.cur, l.Burst, w)
	v.ResetAfter = max(0, s.expiry(now, w)-now)
}

// expiry is when nothing of s counts any more; now, if nothing does.
func (s slidingState) expiry(now, w int64) int64 {
	switch {
	case s.cur > 0:
		return s.start + 2*w
	case s.prev > 0:
		return s.start + w
	}
	return now
}

// wait is the time until at most room units are used, which is not so at now.
func (s slidingState) wait(now, w, room int64) int64 {
	if s.cur <= room { // the older window's share shrinks to what is left
		return s.start + shrunk(s.prev, room-s.cur, w) - now
	}
	return s.start + w + shrunk(s.cur, room, w) - now // and of the next window, this one is the older
}

// shrunk is the time into a window, 0 to w, at which n units of the window before
// count as room or less: the smallest e with n*(w-e) <= room*w.
func shrunk(n, room, w int64) int64 {
	if n <= room {
		return 0
	}
	hi, lo := bits.Mul64(uint64(room), uint64(w)) // room < n, so the quotient is below w
	q, _ := bits.Div64(hi, lo, uint64(n))
	return w - int64(q)
}

// fitsWindow says that prev*left + cur*w <= limit*w.
func fitsWindow(prev, left, cur, limit, w int64) bool {
	if cur > limit {
		return false
	}
	ph, pl := bits.Mul64(uint64(prev), uint64(left))
	rh, rl := bits.Mul64(uint64(limit-cur), uint64(w))
	return ph < rh || ph == rh && pl <= rl
}

// roomInWindow is the most units that fit: floor(((limit-cur)*w - prev*left) / w), at least 0.
func roomInWindow(prev, left, cur, limit, w int64) int64 {
	if !fitsWindow(prev, left, cur, limit, w) {
		return 0
	}
	ph, pl := bits.Mul64(uint64(prev), uint64(left))
	rh, rl := bits.Mul64(uint64(limit-cur), uint64(w))
	lo, borrow := bits.Sub64(rl, pl, 0)
	hi, _ := bits.Sub64(rh, ph, borrow)
	q, _ := bits.Div64(hi, lo, uint64(w)) // at most limit-cur
	return int64(q)
}

func (e *Effect) replaceSliding(s slidingState, now, w int64, buf []byte) {
	e.Op = Replace
	e.State = binary.LittleEndian.AppendUint64(buf[:0], uint64(s.start))
	e.State = binary.LittleEndian.AppendUint64(e.State, uint64(s.cur))
	e.State = binary.LittleEndian.AppendUint64(e.State, uint64(s.prev))
	e.Expiry = s.expiry(now, w)
}
