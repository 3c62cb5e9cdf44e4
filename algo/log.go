package algo

import "encoding/binary"

// The exact sliding log: the time and weight of each admitted call of the last
// period W.
//
// State: 16 bytes for each, little endian: time in ns of cluster time, weight;
// oldest first. One that was made at s counts at now if s > now - W, so in any
// (t-W, t] at most limit units are admitted. With used = the sum of those that count:
//
//	allowed = used + cost <= limit
//
// An admission drops what does not count any more and appends itself; nothing
// else of the state is written again. A refund takes from the newest.

// LogEntry is the size of an entry of a log's state, in bytes.
const LogEntry = 16

// logState is the entries that count.
type logState []byte

func (s logState) len() int           { return len(s) / LogEntry }
func (s logState) time(i int) int64   { return int64(binary.LittleEndian.Uint64(s[i*LogEntry:])) }
func (s logState) weight(i int) int64 { return int64(binary.LittleEndian.Uint64(s[i*LogEntry+8:])) }

// log fills in v and e, which are zero.
func (l Limit) log(v *Verdict, e *Effect, state []byte, now, cost int64, buf []byte) {
	v.Limit = l.Burst
	if !decidable(now, 0) {
		v.RetryAfter = Never
		return
	}
	s := logState(state)
	gone := 0
	for ; gone < s.len() && s.time(gone) <= now-l.period; gone++ {
	}
	s = s[gone*LogEntry:]
	used, ok := s.sum()
	if !ok || len(state)%LogEntry != 0 {
		l.unreadable(v, cost)
		return
	}
	newest := now - l.period // of an empty log
	if s.len() > 0 {
		newest = s.time(s.len() - 1)
	}
	switch {
	case cost < 0:
		v.Allowed = true
		back := units(-cost, used)
		used -= back
		newest = s.refund(e, back, now-l.period, buf)
		e.Drop, e.Expiry = gone*LogEntry, newest+l.period
	case cost > l.Burst:
		v.RetryAfter = Never
	case used > l.Burst-cost:
		v.RetryAfter = s.wait(now, l.period, used-(l.Burst-cost))
	case cost == 0:
		v.Allowed = true
	default:
		v.Allowed = true
		used += cost
		newest = max(now, newest) // it cannot be later: time does not go back
		e.Op, e.Drop, e.Expiry = Splice, gone*LogEntry, newest+l.period
		e.State = appendLogEntry(buf[:0], newest, cost)
	}
	v.Remaining = max(0, l.Burst-used)
	v.ResetAfter = newest + l.period - now
}

// sum adds up the weights; false: this is not what charges make. A decision reads all
// that counts, 1 to 2 ns an entry (BenchmarkLog), so this loop compares as little as it can.
func (s logState) sum() (used int64, ok bool) {
	before := int64(-maxSpan)
	for ; len(s) >= LogEntry; s = s[LogEntry:] {
		at, w := s.time(0), s.weight(0)
		if used += w; at < before || w < 1 || w > maxUnits || used > 2*maxUnits {
			return 0, false
		}
		before = at
	}
	return used, before <= maxSpan // the newest is the largest
}

// wait is the time until over units, or more, count no longer.
func (s logState) wait(now, period, over int64) int64 {
	i := 0
	for ; i < s.len()-1 && over > s.weight(i); i++ {
		over -= s.weight(i)
	}
	return s.time(i) + period - now
}

// refund takes back units off the newest entries, and returns the time of the
// newest that is left, or of none.
func (s logState) refund(e *Effect, back, none int64, buf []byte) (newest int64) {
	e.Op, e.State = Splice, buf[:0]
	n := s.len()
	for ; n > 0 && back >= s.weight(n-1); n-- {
		back -= s.weight(n - 1)
		e.Cut += LogEntry
	}
	if n == 0 {
		return none
	}
	if back > 0 {
		e.Cut += LogEntry
		e.State = appendLogEntry(buf[:0], s.time(n-1), s.weight(n-1)-back)
	}
	return s.time(n - 1)
}

func appendLogEntry(dst []byte, time, weight int64) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(time))
	return binary.LittleEndian.AppendUint64(dst, uint64(weight))
}
