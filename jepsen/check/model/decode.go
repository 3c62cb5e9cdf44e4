package model

import (
	"encoding/binary"
	"fmt"
	"math/big"
)

// Decode reads the bytes of a state: those of a bucket are its tat, of a fixed counter the
// end of the window and its units, of a sliding one the start of the window, its units
// and those of the window before, of a log a time and units for each call; numbers of 8
// bytes, little endian. The expiry must be when the state means nothing any more.
func (id Identity) Decode(b []byte, expiry int64) (s State, err error) {
	n := make([]int64, len(b)/8)
	for i := range n {
		n[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	words := map[uint8]int{Throttle: 1, GCRA: 1, Token: 1, Leaky: 1, Fixed: 2, Sliding: 3}[id.Algorithm]
	if len(b)%8 != 0 || words > 0 && len(n) != words || id.Algorithm == Log && len(n)%2 != 0 {
		return s, fmt.Errorf("%d bytes are no state of algorithm %d", len(b), id.Algorithm)
	}
	switch id.Algorithm {
	case Fixed:
		s.kept = []kept{{n[0], n[1]}}
	case Sliding:
		s.kept = []kept{{n[0] - id.Period, n[2]}, {n[0], n[1]}}
	case Log:
		for i := 0; i < len(n); i += 2 {
			s.kept = append(s.kept, kept{n[i], n[i+1]})
		}
	default:
		s.tat = big.NewInt(n[0])
	}
	for i, k := range s.kept {
		if k.units < 0 || i > 0 && k.at < s.kept[i-1].at {
			return s, fmt.Errorf("what is kept is not in order, or below 0: %v", s.kept)
		}
		if id.Algorithm != Log && k.at != id.start(k.at) {
			return s, fmt.Errorf("no window of %s has its boundary at %d", id, k.at)
		}
	}
	if end, _ := id.End(s, expiry-1); end != expiry {
		return s, fmt.Errorf("the state means nothing from %d on, and its expiry is %d", end, expiry)
	}
	return s, nil
}
