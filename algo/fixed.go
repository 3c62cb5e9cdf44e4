package algo

import "encoding/binary"

// The fixed window counter: units admitted in the window that now lies in. Windows
// of a duration are counted from the epoch in cluster time, calendar windows by
// the date, now + offset.
//
// State: 16 bytes, little endian: the end of the window (ns of cluster time, or
// of the date), the units admitted in it.
//
//	allowed = used + cost <= limit     used is 0 from the end on
//
// The window of a record is over when its date reaches the end, and not before,
// whatever happens to the offset: a key never gets back to a window that it left.
// The expiry holds for the offset of the decision. Whoever moves the offset back
// moves the expiry of calendar records on by as much, or they are forgotten early;
// those that are gone by then, because their window was over, start again.

const fixedSize = 16

// fixed fills in v and e, which are zero.
func (l Limit) fixed(v *Verdict, e *Effect, state []byte, now, offset, cost int64, buf []byte) {
	if l.calendar == nil {
		offset = 0
	}
	v.Limit = l.Burst
	if !decidable(now, offset) {
		v.RetryAfter = Never
		return
	}
	date := now + offset
	end, used, ok := l.readFixed(state)
	if !ok {
		l.unreadable(v, cost)
		return
	}
	if len(state) == 0 || date >= end {
		end, used = l.windowEnd(date), 0
	}
	switch {
	case cost < 0:
		v.Allowed = true
		used -= units(-cost, used)
		e.replaceFixed(end, used, offset, now, buf)
	case cost > l.Burst:
		v.RetryAfter = Never
	case used > l.Burst-cost:
		v.RetryAfter = end - date
	case cost == 0:
		v.Allowed = true
	default:
		v.Allowed = true
		used += cost
		e.replaceFixed(end, used, offset, now, buf)
	}
	v.Remaining = max(0, l.Burst-used)
	if used > 0 {
		v.ResetAfter = end - date
	}
}

// readFixed reads a state. One of any other length, or with numbers that no charge
// makes, was not written here.
func (l Limit) readFixed(state []byte) (end, used int64, ok bool) {
	switch len(state) {
	case 0:
		return 0, 0, true
	case fixedSize:
		end, used = int64(binary.LittleEndian.Uint64(state)), int64(binary.LittleEndian.Uint64(state[8:]))
		ok = 0 <= used && used <= maxUnits && end <= maxSpan+maxSpan/2 && (l.calendar != nil || end%l.period == 0)
	}
	return end, used, ok
}

// windowEnd is the end of the window that date lies in.
func (l Limit) windowEnd(date int64) int64 {
	if l.calendar != nil {
		return l.calendar.end(date)
	}
	return date - mod(date, l.period) + l.period
}

func (e *Effect) replaceFixed(end, used, offset, now int64, buf []byte) {
	e.Op = Replace
	e.State = binary.LittleEndian.AppendUint64(buf[:0], uint64(end))
	e.State = binary.LittleEndian.AppendUint64(e.State, uint64(used))
	if e.Expiry = end - offset; used == 0 {
		e.Expiry = now
	}
}
