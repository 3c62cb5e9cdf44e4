package resp

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Half-sent commands of any length cost what was sent of them, and are answered when
// they are whole.
func TestHalfSentCommands(t *testing.T) {
	s, addr := listen(t, Config{}, newFakeLimiter())
	for _, size := range []int{1, 500, largeHalf - 20, largeHalf, largeHalf + 1, readSize - 1, readSize, readSize + 1, 50 << 10, 60 << 10} {
		msg := strings.Repeat("x", size)
		b := append(commandBytes("PING"), commandBytes("ECHO", msg)...)
		for _, at := range []int{15, 16, len(b) - size, len(b) - 1, len(b)/2 + 1} {
			c := dial(t, addr)
			c.Write(b[:at])
			expect(t, c, "+PONG\r\n")
			eventually(t, "it waits for more", func() bool { return s.buffers.used.Load() == 0 == (at <= 14) })
			held := s.buffers.used.Load()
			if most := int64(max(readSize, 2*at)); held > most {
				t.Errorf("%d bytes of a command of %d cost %d", at, len(b), held)
			}
			c.Write(b[at:])
			expect(t, c, fmt.Sprintf("$%d\r\n%s\r\n", size, msg))
			eventually(t, "nothing is held", func() bool { return s.buffers.used.Load() == 0 })
			c.Close()
		}
	}
}

// A command that comes byte by byte, through every way in which it can wait.
func TestAByteAtATime(t *testing.T) {
	_, addr := listen(t, Config{}, newFakeLimiter())
	c := dial(t, addr)
	c.(*net.TCPConn).SetNoDelay(true)
	msg := strings.Repeat("y", readSize+100)
	go func() {
		for _, b := range append(commandBytes("ECHO", msg), "PING\r\n"...) {
			c.Write([]byte{b})
		}
	}()
	expect(t, c, fmt.Sprintf("$%d\r\n%s\r\n+PONG\r\n", len(msg), msg))
}

// When there is no memory for more, who asks for it is told and closed, and the
// others work on.
func TestBuffersOfAllConnectionsAreBounded(t *testing.T) {
	s, addr := listen(t, Config{MaxBuffers: 100 << 10}, newFakeLimiter())
	works := dial(t, addr)
	b := commandBytes("ECHO", strings.Repeat("x", 60<<10))
	first := dial(t, addr)
	first.Write(b[:40<<10])
	eventually(t, "it waits", func() bool { return s.buffers.used.Load() > 40<<10 })
	second := dial(t, addr)
	second.Write(b[:40<<10])
	expectClosed(t, second, "-ERR "+errBuffers.Error()+"\r\n")
	works.Write(take("a"))
	expect(t, works, allowed)
	first.Write(b[40<<10:])
	expect(t, first, string(bytes.Replace(b, []byte("*2\r\n$4\r\nECHO\r\n"), nil, 1)))
	eventually(t, "nothing is held", func() bool { return s.buffers.used.Load() == 0 })
}

// Replies that nobody reads count as well.
func TestUnreadRepliesAreBounded(t *testing.T) {
	s, addr := listen(t, Config{MaxBuffers: 1 << 20, WriteTimeout: time.Minute}, newFakeLimiter())
	c := dial(t, addr)
	c.(*net.TCPConn).SetReadBuffer(4 << 10)
	c.SetWriteDeadline(time.Now().Add(10 * time.Second))
	b := bytes.Repeat(commandBytes("ECHO", strings.Repeat("x", 60<<10)), 1000)
	if _, err := c.Write(b); err == nil {
		t.Error("took everything")
	}
	eventually(t, "it is closed", func() bool { return s.connected() == 0 })
	eventually(t, "nothing is held", func() bool { return s.buffers.used.Load() == 0 })
}

// A large command has a time to be whole; a small one, and one after another, have not.
func TestLargeHalfSentCommandsMustGetWhole(t *testing.T) {
	s, addr := listen(t, Config{}, newFakeLimiter())
	s.wholeWithin = 300 * time.Millisecond
	small, large := dial(t, addr), dial(t, addr)
	io.WriteString(small, "PIN")
	b := commandBytes("ECHO", strings.Repeat("x", 60<<10))
	large.Write(b[:40<<10])
	expectClosed(t, large, "")
	io.WriteString(small, "G\r\n")
	expect(t, small, "+PONG\r\n")

	// One large command behind the other, each cut in the middle, for longer than one has.
	busy := dial(t, addr)
	busy.Write(b[:40<<10])
	for began := time.Now(); time.Since(began) < 2*s.wholeWithin; {
		busy.Write(append(b[40<<10:len(b):len(b)], b[:40<<10]...))
		expect(t, busy, string(b[14:]))
	}
	busy.Write(b[40<<10:])
	expect(t, busy, string(b[14:]))
	idle := time.Now()
	eventually(t, "it may be idle again", func() bool { return time.Since(idle) > 2*s.wholeWithin })
	io.WriteString(busy, "PING\r\n")
	expect(t, busy, "+PONG\r\n")
}
