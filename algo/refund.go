package algo

// Refund gives units (1 or more) back of a charge that was made at charged, a time not
// after now: to the window, or the entry of the log, that it was made in, and to no
// other. It is otherwise [Limit.Decide] with a negative cost. Whoever calls it sees to
// it that the charge still counts (its record's expiry, when it was made, is after
// now), and that no charge is given back twice.
func (l Limit) Refund(state []byte, now, offset, units, charged int64, buf []byte) (v Verdict, e Effect) {
	switch l.Algorithm {
	case Sliding:
		s, ok := readSliding(state, now, l.period)
		if !ok || !decidable(now, 0) {
			break
		}
		switch start := charged - mod(charged, l.period); start {
		case s.start:
			s.cur -= min(s.cur, units)
		case s.start - l.period:
			s.prev -= min(s.prev, units)
		}
		e.replaceSliding(s, now, l.period, buf)
		v, _ = l.Decide(e.State, now, offset, 0, nil)
		v.Allowed, v.RetryAfter = true, 0
		return v, e
	case Log:
		return l.refundEntry(state, now, offset, units, charged, buf)
	}
	return l.Decide(state, now, offset, -units, buf)
}

// refundEntry takes units off the entries that were made at charged. What came after
// them is written again.
func (l Limit) refundEntry(state []byte, now, offset, units, charged int64, buf []byte) (v Verdict, e Effect) {
	s := logState(state)
	if _, ok := s.sum(); !ok || len(state)%LogEntry != 0 || !decidable(now, 0) {
		return l.Decide(state, now, offset, -units, buf)
	}
	first := 0
	for first < s.len() && s.time(first) < charged {
		first++
	}
	after := first
	for after < s.len() && s.time(after) == charged {
		after++
	}
	kept := buf[:0]
	for i := first; i < after; i++ {
		back := min(units, s.weight(i))
		if units -= back; s.weight(i) > back {
			kept = appendLogEntry(kept, charged, s.weight(i)-back)
		}
	}
	kept = append(kept, s[after*LogEntry:]...)
	e = Effect{Op: Splice, Cut: len(state) - first*LogEntry, State: kept, Expiry: now}
	left := append(append(make([]byte, 0, len(state)), s[:first*LogEntry]...), kept...)
	if n := logState(left).len(); n > 0 {
		e.Expiry = logState(left).time(n-1) + l.period
	}
	v, _ = l.Decide(left, now, offset, 0, nil)
	v.Allowed, v.RetryAfter = true, 0
	return v, e
}
