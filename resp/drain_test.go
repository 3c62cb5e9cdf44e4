package resp

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// Drain closes who is idle, answers who is busy, and admits nobody.
func TestDrainAnswersWhatWasRead(t *testing.T) {
	l := newFakeLimiter()
	l.gate, l.entered = make(chan struct{}), make(chan struct{})
	s, addr := listen(t, Config{}, l)
	idle, partial, busy := dial(t, addr), dial(t, addr), dial(t, addr)
	io.WriteString(idle, "PING\r\n")
	expect(t, idle, "+PONG\r\n")
	io.WriteString(partial, "PING\r\n*2\r\n$4\r\nEC")
	expect(t, partial, "+PONG\r\n")
	busy.Write(append(take("a"), commandBytes("PING")...))
	<-l.entered

	drained := make(chan struct{})
	go func() {
		s.Drain(10 * time.Second)
		close(drained)
	}()
	expectClosed(t, idle, "")
	expectClosed(t, partial, "")
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("a connection was accepted while draining")
	}
	select {
	case <-drained:
		t.Error("Drain did not wait for the busy connection")
	default:
	}
	close(l.gate)
	expectClosed(t, busy, allowed+"+PONG\r\n")
	select {
	case <-drained:
	case <-time.After(5 * time.Second):
		t.Error("Drain does not return")
	}
}

// A request that is on its way when the server begins to drain is answered: its client
// could not know. The end of the stream comes with the answer, so that a client that
// looks at its connection before the next request sees it.
func TestDrainAnswersWhatIsOnItsWay(t *testing.T) {
	l := newFakeLimiter()
	s, addr := listen(t, Config{}, l)
	s.lastCall = 10 * time.Second
	var conns []*net.TCPConn
	for range 50 {
		c := dial(t, addr)
		io.WriteString(c, "PING\r\n")
		expect(t, c, "+PONG\r\n")
		conns = append(conns, c.(*net.TCPConn))
	}
	drained := make(chan struct{})
	go func() {
		s.Drain(time.Minute)
		close(drained)
	}()
	eventually(t, "the server to drain", s.draining.Load)
	for i, c := range conns {
		if i%2 == 0 { // in two parts
			io.WriteString(c, "PI")
			io.WriteString(c, "NG\r\n")
		} else {
			c.Write(take(fmt.Sprint("key", i)))
		}
	}
	for i, c := range conns {
		if i%2 == 0 {
			expect(t, c, "+PONG\r\n")
		} else {
			expect(t, c, allowed)
		}
		rc, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		rc.Control(func(fd uintptr) {
			if n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT); n != 0 || err != nil {
				t.Errorf("connection %d after its answer: %d bytes, %v; want its end", i, n, err)
			}
		})
	}
	select {
	case <-drained:
	case <-time.After(5 * time.Second):
		t.Error("Drain does not return")
	}
}

// Whoever does not finish in time is cut.
func TestDrainIsBounded(t *testing.T) {
	l := newFakeLimiter()
	l.gate, l.entered = make(chan struct{}), make(chan struct{})
	s, addr := listen(t, Config{}, l)
	c := dial(t, addr)
	c.Write(take("a"))
	<-l.entered
	start := time.Now()
	s.Drain(50 * time.Millisecond)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("Drain took %v", d)
	}
	expectClosed(t, c, "")
	close(l.gate)
}
