package nemesis

import (
	"context"
	"strings"
	"time"

	"limitd/jepsen/lab"
)

var hostile = []Nemesis{
	{"hostile-bytes", "a packet that ends the process", "bytes", nil, func(ctx context.Context, e *Env) error {
		ids := e.some(9)
		e.begin(ids, "on both ports")
		defer e.end(ids, "")
		for range 60 {
			id := ids[e.Rand.IntN(len(ids))]
			port := []lab.Port{lab.RESPPort, lab.PeerPort}[e.Rand.IntN(2)]
			e.send(id, port, e.bytes())
			if !e.wait(ctx, 0, 60*time.Millisecond) {
				return nil
			}
		}
		return nil
	}},
}

// killers are requests that have ended or occupied servers of this protocol.
var killers = []string{
	"*1\r\n$9223372036854775807\r\n", "*9223372036854775807\r\n", "*-1\r\n", "*1\r\n$-5\r\n", "*2147483648\r\n$1\r\n",
	"$5\r\nhello\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", "\"unbalanced\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\n\r\n",
	"*3\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n", "\x16\x03\x01\x02\x00\x01\x00", strings.Repeat("*1\r\n", 5000), strings.Repeat("A", 200_000),
	"*6\r\n$11\r\nCL.THROTTLE\r\n$1\r\nx\r\n$20\r\n99999999999999999999\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n",
	"limitd", "limitd\x02", "LIMITD\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff",
}

// bytes are a killer, perhaps damaged, or noise.
func (e *Env) bytes() []byte {
	b := []byte(killers[e.Rand.IntN(len(killers))])
	switch e.Rand.IntN(3) {
	case 0:
		b[e.Rand.IntN(len(b))] ^= byte(1 + e.Rand.IntN(255))
	case 1:
		b = make([]byte, 1+e.Rand.IntN(4096))
		for i := range b {
			b[i] = byte(e.Rand.IntN(256))
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
	c.SetDeadline(time.Now().Add(100 * time.Millisecond))
	c.Write(b)
	c.Read(make([]byte, 4096))
}
