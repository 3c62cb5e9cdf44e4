package nemesis

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"limitd/jepsen/lab"
)

var hostile = []Nemesis{
	{"hostile-bytes", "a packet of a stranger that ends, fills or occupies a process", Ports, nil, func(ctx context.Context, e *Env) error {
		ids := e.everybody()
		return e.during(ids, "on both ports", func() error {
			var all sync.WaitGroup
			defer all.Wait()
			for range 80 {
				id, port := ids[e.Rand.IntN(len(ids))], lab.RESPPort
				b := draw(e.Rand, commands)
				if e.Rand.IntN(2) == 0 {
					port, b = lab.PeerPort, draw(e.Rand, frames)
				}
				all.Go(func() { e.send(id, port, b) })
				if !e.wait(ctx, 10*time.Millisecond, 80*time.Millisecond) {
					break
				}
			}
			return nil
		})
	}},
}

// commands are what has ended or occupied servers that speak RESP.
var commands = []string{
	"*1\r\n$9223372036854775807\r\n",                                             // i + size overflows
	"*9223372036854775807\r\n",                                                   // a loop without an end
	"*1\r\n$2147483647\r\nx", "*1\r\n$536870912\r\nx", "*1048577\r\n$1\r\nx\r\n", // memory for what never comes
	"*-1\r\n", "*0\r\n", "*1\r\n$-5\r\n", "*+1\r\n$4\r\nPING\r\n", "*1\r\n$ 4\r\nPING\r\n", "*01\r\n$04\r\nPING\r\n",
	"*2\r\n$4\r\nECHO\r\n", "*1\r\n$4\r\nPI", "*1\r\n$4\r\nPINGPING", "*1\r\n:4\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", // halves, and other types
	strings.Repeat("*1\r\n", 5000), strings.Repeat("*1\r\n$4\r\nPING\r\n", 5000), strings.Repeat("A", 200_000), strings.Repeat("\r\n", 50_000),
	"\"unbalanced\r\n", "'\\x\r\n", "PING\n", "\x00\x00\x00\x00", "$5\r\nhello\r\n", "+OK\r\n", "-ERR\r\n", "_\r\n", "%1\r\n$1\r\na\r\n$1\r\nb\r\n",
	"*3\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n",
	"*6\r\n$11\r\nCL.THROTTLE\r\n$1\r\nx\r\n$20\r\n99999999999999999999\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n",
	"*6\r\n$11\r\nCL.THROTTLE\r\n$1\r\nx\r\n$3\r\nNaN\r\n$2\r\n-0\r\n$1\r\n1\r\n$3\r\n1e9\r\n",
	"*2\r\n$8\r\nRL.TRACE\r\n$20\r\n18446744073709551616\r\n", "*3\r\n$5\r\nHELLO\r\n$1\r\n9\r\n$4\r\nAUTH\r\n",
	"*2\r\n$10\r\nRL.CLUSTER\r\n$6\r\nREMOVE\r\n", "*3\r\n$10\r\nRL.CLUSTER\r\n$6\r\nREMOVE\r\n$4\r\nnone\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nPING\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "SSH-2.0-x\r\n",
}

// frames are for the peer port: beginnings of greetings (cluster/FORMAT.md), and what a
// stranger that was greeted could go on with.
var frames = []string{
	"l", "limitdPP", "limitdPP\x02", "limitdPP\x02\x01", "limitdPP\x02\x01\xff\xff", "limitdPP\x02\x01\x04\x00" + strings.Repeat("A", 1024),
	"limitdPP\x02\x03\x00\x1e" + strings.Repeat("\x00", 30), "limitdPP\xff\x01\x00\x00", "limitdPQ\x02\x01\x00\x00", strings.Repeat("\xff", 3000),
	greeting(1, ""), greeting(2, ""), greeting(1, strings.Repeat("g", 200)), greeting(2, "a b"),
	greeting(1, "ghost") + "\x00", greeting(1, "ghost") + "\x00\xdf\xff\xff\xff\xff", greeting(1, "ghost") + "\x01\x8a", // raft's calls, in MessagePack
	greeting(1, "ghost") + "\x02\x81\xa4Term\xdd\xff\xff\xff\xff", greeting(1, "ghost") + "\x02\xc6\xff\xff\xff\xff", greeting(1, "ghost") + "\x63",
	greeting(2, "ghost") + "\x00\x00\x00\x00", greeting(2, "ghost") + "\xff\xff\xff\xff", greeting(2, "ghost") + "\x00\x40\x00\x00" + strings.Repeat("\x00", 64),
	greeting(2, "ghost") + "\x00\x00\x00\x0d" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x01" + "\x00\x00\x10\x00",
	greeting(2, "ghost") + "\x00\x00\x00\x11" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x01" + "\x00\x00\x10\x00" + "\xff\xff\xff\xff",
	greeting(2, "ghost") + "\x00\x00\x00\x0d" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\xff" + "\xff\xff\xff\xff",
	"GET / HTTP/1.1\r\n\r\n", "*1\r\n$4\r\nPING\r\n",
}

// greeting is a hello of a node that belongs to no cluster yet.
func greeting(purpose byte, raftID string) string {
	body := make([]byte, 16+8)
	for _, s := range []string{raftID, ""} {
		body = append(binary.BigEndian.AppendUint16(body, uint16(len(s))), s...)
	}
	head := append([]byte("limitdPP\x02"), purpose)
	return string(append(binary.BigEndian.AppendUint16(head, uint16(len(body))), body...))
}

// draw is one of these as it stands, damaged or cut, or noise.
func draw(r *rand.Rand, corpus []string) []byte {
	b := []byte(corpus[r.IntN(len(corpus))])
	switch r.IntN(6) {
	case 0:
		b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
	case 1:
		b = b[:1+r.IntN(len(b))]
	case 2:
		b = make([]byte, 1+r.IntN(4096))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
	}
	return b
}

// send writes bytes to a port and leaves after a moment, answered or not.
func (e *Env) send(id string, port lab.Port, b []byte) {
	c, err := e.Lab.Network().Dial(id, port, 200*time.Millisecond)
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(300 * time.Millisecond))
	c.Write(b)
	c.Read(make([]byte, 4096))
}
