package lab

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// rule is what the switch does to frames of one direction.
type rule struct {
	Quality
	cut, peerCut, respCut bool
}

// longestQueue is for how long a frame may wait for a narrow link before it is
// dropped, as the buffer of a router would.
const longestQueue = 500 * time.Millisecond

const maxFrame = 14 + 1500

// pass reads the frames of one port until the switch is closed. A frame that is no
// IPv4 (who has this address?) passes at once, as on the bridge.
func (t *taps) pass(from int) {
	draw := rand.New(rand.NewPCG(t.seed, uint64(from)))
	free := make([]time.Time, len(t.ports)) // when each narrow link has sent all that it was given
	for buf := make([]byte, maxFrame); ; {
		n, err := t.ports[from].Read(buf)
		if err != nil {
			return
		}
		if n < 14 {
			continue
		}
		frame, rules := buf[:n], (*t.rules.Load())[from]
		for to := range t.ports {
			toAll, toIt := frame[0]&1 == 1, int(frame[5]) == to && frame[0] == 2
			if to == from || !toAll && !toIt {
				continue
			}
			r := rules[to]
			switch ports, ip := tcpPorts(frame); {
			case !ip:
				t.ports[to].Write(frame)
			case r.drops(ports):
			case r.Loss > 0 && draw.Float64() < r.Loss:
			default:
				t.send(to, frame, r.Quality, draw, &free[to])
			}
		}
	}
}

// send writes a frame to a port, now or when its link has carried it.
func (t *taps) send(to int, frame []byte, q Quality, draw *rand.Rand, free *time.Time) {
	if q == (Quality{}) {
		t.ports[to].Write(frame)
		return
	}
	now := time.Now()
	at := now
	if q.BytesPerSec > 0 {
		if free.After(at) {
			at = *free
		}
		if at.Sub(now) > longestQueue {
			return
		}
		at = at.Add(time.Duration(int64(len(frame)) * int64(time.Second) / q.BytesPerSec))
		*free = at
	}
	at = at.Add(q.Delay)
	if q.Jitter > 0 {
		at = at.Add(time.Duration(draw.Int64N(2*int64(q.Jitter)+1)) - q.Jitter)
	}
	t.late.add(at, t.ports[to], bytes.Clone(frame))
}

// drops says that a frame with these TCP ports is cut off.
func (r rule) drops(ports [2]uint16) bool {
	is := func(p uint16) bool { return ports[0] == p || ports[1] == p }
	return r.cut || r.peerCut && is(peerPort) || r.respCut && is(respPort)
}

// tcpPorts returns the source and destination ports of a frame, 0 if it has none,
// and whether it is IPv4 at all.
func tcpPorts(frame []byte) (ports [2]uint16, ip bool) {
	const ipv4, tcp = 0x0800, 6
	if len(frame) < 34 || binary.BigEndian.Uint16(frame[12:]) != ipv4 {
		return ports, false
	}
	packet := frame[14:]
	header := int(packet[0]&15) * 4
	if packet[9] != tcp || len(packet) < header+4 {
		return ports, true
	}
	return [2]uint16{binary.BigEndian.Uint16(packet[header:]), binary.BigEndian.Uint16(packet[header+2:])}, true
}
