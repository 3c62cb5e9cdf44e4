package resp

import (
	"io"
	"net"
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
