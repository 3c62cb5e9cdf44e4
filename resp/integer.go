package resp

import "math"

// parseInt reads a signed 64 bit decimal as redis-cell does: an optional + or
// -, then digits, leading zeros allowed; no blanks, no point, no exponent.
func parseInt(b []byte) (int64, bool) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	if len(b) <= 18 { // cannot overflow
		for _, c := range b {
			d := c - '0'
			if d > 9 {
				return 0, false
			}
			n = n*10 + uint64(d)
		}
	} else {
		for _, c := range b {
			d := c - '0'
			if d > 9 || n > math.MaxInt64/10 {
				return 0, false
			}
			n = n*10 + uint64(d)
		}
		if n > math.MaxInt64+1 || n > math.MaxInt64 && !neg {
			return 0, false
		}
	}
	if neg {
		return int64(-n), true
	}
	return int64(n), true
}

// parseUint reads an unsigned 64 bit decimal: digits only.
func parseUint(b []byte) (uint64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
