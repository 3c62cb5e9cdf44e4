package algo

import (
	"encoding/binary"
	"math/bits"
)

// Dated says that l counts in calendar windows, so that a decision needs the offset.
func (l *Limit) Dated() bool { return l.expr != nil && l.calendar != nil }

// Used is what a record holds against its limit at now: ns of debt for the times of
// gcra, token, leaky and CL.THROTTLE, else units (of sliding those of both windows as
// they count now, rounded up). It is 0 for a state or identity that cannot be read.
func Used(ident, state []byte, now, offset int64) int64 {
	id, err := ReadIdent(ident)
	if err != nil {
		return 0
	}
	switch id.Algorithm {
	case Fixed:
		if id.period > 0 {
			offset = 0
		}
		if len(state) != fixedSize || int64(binary.LittleEndian.Uint64(state)) <= now+offset {
			return 0
		}
		return int64(binary.LittleEndian.Uint64(state[8:]))
	case Sliding:
		s, ok := readSliding(state, now, id.period)
		if !ok {
			return 0
		}
		hi, lo := bits.Mul64(uint64(s.prev), uint64(id.period-max(0, now-s.start)))
		weighed, rest := bits.Div64(hi, lo, uint64(id.period)) // at most prev
		if rest > 0 {
			weighed++
		}
		return s.cur + int64(weighed)
	case Log:
		used, s := int64(0), logState(state)
		for i := range s.len() {
			if s.time(i) > now-id.period {
				used += s.weight(i)
			}
		}
		return used
	}
	if len(state) != tatSize {
		return 0
	}
	return max(0, int64(binary.LittleEndian.Uint64(state))-now)
}
