package resp

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// A client that asks for much and reads nothing has its turn, and leaves it to the
// next while it waits.
func TestNobodyWaitsForAClientThatDoesNotRead(t *testing.T) {
	s, addr := listen(t, Config{WriteTimeout: time.Minute, OutputBuffer: 1 << 20}, newFakeLimiter())
	s.turns = make(chan struct{}, 1)
	docs := len(newSession(t, Config{}).do("COMMAND", "DOCS"))
	ask := bytes.Repeat(commandBytes("COMMAND", "DOCS"), 500)
	for range 3 {
		deaf := dial(t, addr)
		deaf.(*net.TCPConn).SetReadBuffer(4 << 10)
		deaf.Write(ask)
	}
	eventually(t, "they wait to be read", func() bool { return s.buffers.used.Load() > 3<<20 && len(s.turns) == 0 })
	c := dial(t, addr)
	go c.Write(ask)
	if n, err := io.CopyN(io.Discard, c, int64(500*docs)); err != nil {
		t.Errorf("%d of %d bytes, %v", n, 500*docs, err)
	}
	eventually(t, "no turn is kept", func() bool { return len(s.turns) == 0 })
}

// Work is bounded by turns also when its replies are short.
func TestSlowCommandsTakeTurns(t *testing.T) {
	s := newSession(t, Config{})
	turns := 0
	s.srv.turns = make(chan struct{}, 1)
	s.out = writerFunc(func(b []byte) (int, error) {
		if len(s.srv.turns) > 0 {
			t.Error("it waits for its client in its turn")
		}
		turns++
		return len(b), nil
	})
	s.feed(bytes.Repeat(commandBytes("DBSIZE"), 10*(slowMax+1)))
	if turns != 10 || len(s.srv.turns) > 0 {
		t.Errorf("%d writes, and %d turns are kept", turns, len(s.srv.turns))
	}
}
