package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestServesManyClients(t *testing.T) {
	l := newFakeLimiter()
	s, addr := listen(t, Config{}, l)
	const n = 20
	done := make(chan error, n)
	for i := range n {
		go func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				done <- err
				return
			}
			defer c.Close()
			for j := range 50 {
				want := allowed + "+PONG\r\n"
				c.Write(append(take(fmt.Sprint(i, j)), commandBytes("PING")...))
				got := make([]byte, len(want))
				if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
					done <- fmt.Errorf("%q, %v", got, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if size := l.Size(0); size != n*50 {
		t.Errorf("%d keys, want %d", size, n*50)
	}
	if got := s.counters.commands.Load(); got != 2*n*50 {
		t.Errorf("%d commands counted, want %d", got, 2*n*50)
	}
	eventually(t, "connections are forgotten", func() bool { return s.connected() == 0 })
}

// The first bytes that a reader without bounds dies of.
func TestKillersAsFirstBytes(t *testing.T) {
	_, addr := listen(t, Config{}, newFakeLimiter())
	for in, want := range map[string]string{
		"*1\r\n$9223372036854775807\r\n":     "-ERR Protocol error: invalid bulk length: more than resp.max_arg_bytes = 65536\r\n",
		"*9000000000000000000\r\n":           "-ERR Protocol error: invalid multibulk length: more than resp.max_args = 1024\r\n",
		"*1\r\n$4\r\nPING\r\n*-1\r\n*1\r\n+": "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n",
	} {
		c := dial(t, addr)
		io.WriteString(c, in)
		expectClosed(t, c, want)
	}
	c := dial(t, addr)
	io.WriteString(c, "PING\r\n")
	expect(t, c, "+PONG\r\n")
}

// A pipeline of 10,000 calls that is written before anything is read.
func TestPipelineOf10000(t *testing.T) {
	l := newFakeLimiter()
	_, addr := listen(t, Config{}, l)
	var input []byte
	for i := range 10000 {
		input = append(input, take(fmt.Sprint(i))...)
	}
	c := dial(t, addr)
	go c.Write(input)
	expect(t, c, strings.Repeat(allowed, 10000))
}

// Many clients write a whole pipeline before they read the first reply.
func TestPipelineLargerThanTheSocketBuffers(t *testing.T) {
	_, addr := listen(t, Config{WriteTimeout: 3 * time.Second}, newFakeLimiter())
	c := dial(t, addr)
	c.(*net.TCPConn).SetReadBuffer(128 << 10)
	const n = 80000
	msg := strings.Repeat("x", 100)
	if _, err := c.Write(bytes.Repeat(commandBytes("ECHO", msg), n)); err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "QUIT\r\n")
	got, err := io.ReadAll(c)
	if want := strings.Repeat("$100\r\n"+msg+"\r\n", n) + "+OK\r\n"; string(got) != want {
		t.Errorf("%d bytes of replies, %v; want %d", len(got), err, len(want))
	}
}

// A client may close its side when it has said all, and read on.
func TestHalfClosedConnectionIsAnswered(t *testing.T) {
	_, addr := listen(t, Config{}, newFakeLimiter())
	c := dial(t, addr)
	const n = 500
	go func() {
		c.Write(bytes.Repeat(commandBytes("COMMAND", "DOCS"), n))
		c.(*net.TCPConn).CloseWrite()
	}()
	want := n * len(newSession(t, Config{}).do("COMMAND", "DOCS"))
	if got, err := io.ReadAll(c); len(got) != want || err != nil {
		t.Errorf("%d bytes, %v; want %d", len(got), err, want)
	}
}

func TestCommandsInPieces(t *testing.T) {
	_, addr := listen(t, Config{}, newFakeLimiter())
	c := dial(t, addr)
	for _, b := range append(take("a"), "PING\r\n"...) {
		c.Write([]byte{b})
	}
	expect(t, c, allowed+"+PONG\r\n")
}

// A command larger than the read buffer is read whole, and what follows too.
func TestLargeCommands(t *testing.T) {
	_, addr := listen(t, Config{}, newFakeLimiter())
	c := dial(t, addr)
	for _, n := range []int{1, 16 << 10, 64 << 10, 3, 40000, 64 << 10} {
		msg := strings.Repeat("x", n)
		go c.Write(append(commandBytes("ECHO", msg), "PING\r\n"...))
		expect(t, c, fmt.Sprintf("$%d\r\n%s\r\n+PONG\r\n", n, msg))
	}
	many := make([]string, 1024)
	for i := range many {
		many[i] = strings.Repeat("k", 1000)
	}
	many[0] = "EXISTS"
	go c.Write(commandBytes(many...))
	expect(t, c, ":0\r\n")
}

// The read buffer of a large command is not kept.
func TestLargeBuffersAreGivenBack(t *testing.T) {
	s := newScratch(bounds{1024, 1 << 20, 1 << 20})
	mem := &share{of: &budget{max: 1 << 20}}
	s.w = copy(s.room(1<<20, mem), "x")
	for s.w < 300<<10 {
		s.w += len(s.room(1<<20, mem))
	}
	if len(s.in) != 512<<10 || mem.held != 512<<10 {
		t.Fatalf("grown to %d, and %d are held", len(s.in), mem.held)
	}
	s.r = s.w - 100
	if s.room(1<<20, mem); len(s.in) != readSize || s.w != 100 || s.r != 0 || mem.held != 0 {
		t.Errorf("buffer of %d, window %d:%d, and %d are held", len(s.in), s.r, s.w, mem.held)
	}
}

// A client that sends and never reads is cut off when it has taken nothing for
// the write timeout, and holds up nobody else meanwhile.
func TestClientThatNeverReads(t *testing.T) {
	s, addr := listen(t, Config{WriteTimeout: 200 * time.Millisecond}, newFakeLimiter())
	c := dial(t, addr)
	c.(*net.TCPConn).SetReadBuffer(4 << 10)
	wrote := make(chan error, 1)
	go func() {
		input := bytes.Repeat(commandBytes("COMMAND", "DOCS"), 100)
		for {
			if _, err := c.Write(input); err != nil {
				wrote <- err
				return
			}
		}
	}()
	other := dial(t, addr)
	for range 20 {
		io.WriteString(other, "PING\r\n")
		expect(t, other, "+PONG\r\n")
	}
	if err := <-wrote; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the client was not cut off: %v", err)
	}
	other.Close()
	eventually(t, "connections are gone", func() bool { return s.connected() == 0 })
}

// A slow client that does read is served to the end: the deadline is for
// progress, not for the whole.
func TestSlowReaderIsNotCutOff(t *testing.T) {
	const timeout = 400 * time.Millisecond
	_, addr := listen(t, Config{WriteTimeout: timeout, OutputBuffer: 64 << 20}, newFakeLimiter())
	c := dial(t, addr)
	c.(*net.TCPConn).SetReadBuffer(16 << 10)
	const n = 400 // one read of the server, one write of megabytes
	c.Write(bytes.Repeat(commandBytes("COMMAND", "DOCS"), n))
	want := newSession(t, Config{}).do("COMMAND", "DOCS")
	start := time.Now()
	for i := range n {
		if i%50 == 0 {
			time.Sleep(timeout / 4) // the client is busy elsewhere
		}
		expect(t, c, want)
	}
	if d := time.Since(start); d < timeout {
		t.Errorf("all was read in %v: nothing is proven", d)
	}
}

// A panic in a handler closes its connection; what came before it is answered.
func TestPanicClosesOneConnection(t *testing.T) {
	l := newFakeLimiter()
	l.panicOn = "boom"
	s, addr := listen(t, Config{}, l)
	other, c := dial(t, addr), dial(t, addr)
	c.Write(append(commandBytes("PING"), take("boom")...))
	got, _ := io.ReadAll(c)
	if string(got) != "" && string(got) != "+PONG\r\n" {
		t.Errorf("read %q", got)
	}
	io.WriteString(other, "PING\r\n")
	expect(t, other, "+PONG\r\n")
	eventually(t, "the connection is forgotten", func() bool { return s.connected() == 1 })
	c = dial(t, addr) // and what the panic left behind harms nobody
	c.Write(take("a"))
	expect(t, c, allowed)
}

// brokenListener fails to accept, as when there are no file descriptors.
type brokenListener struct {
	net.Listener
	fails  atomic.Int64
	broken atomic.Bool
}

func (l *brokenListener) Accept() (net.Conn, error) {
	if l.broken.Load() {
		l.fails.Add(1)
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAcceptErrorsDoNotSpin(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bl := &brokenListener{Listener: ln}
	bl.broken.Store(true)
	s := NewServer(Config{Logger: quiet()}, newFakeLimiter(), newFakeAdmin())
	served := make(chan error, 1)
	start := time.Now()
	go func() { served <- s.Serve(bl) }()
	eventually(t, "a few attempts", func() bool { return bl.fails.Load() >= 4 })
	if d := time.Since(start); d < 35*time.Millisecond { // 5 + 10 + 20
		t.Errorf("4 attempts in %v", d)
	}
	bl.broken.Store(false)
	c := dial(t, ln.Addr().String())
	io.WriteString(c, "PING\r\n")
	expect(t, c, "+PONG\r\n")
	s.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
}

func TestBackoffSpeaksSeldom(t *testing.T) {
	var b backoff
	now, said := time.Unix(1000, 0), 0
	for range 100 {
		d, say := b.next(now)
		if say {
			said++
		}
		if d < 5*time.Millisecond || d > time.Second {
			t.Fatalf("delay %v", d)
		}
		now = now.Add(d)
	}
	if said < 5 || said > 11 { // about 94 seconds
		t.Errorf("spoke %d times", said)
	}
}

func TestServeSaysWhenTheListenerIsGone(t *testing.T) {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	ln.Close()
	s := NewServer(Config{Logger: quiet()}, newFakeLimiter(), newFakeAdmin())
	if err := s.Serve(ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	s.Close()
	ln, _ = net.Listen("tcp", "127.0.0.1:0")
	if err := s.Serve(ln); err != nil {
		t.Errorf("after Close: %v", err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

func TestClientListShowsOthers(t *testing.T) {
	_, addr := listen(t, Config{}, newFakeLimiter())
	a, b := dial(t, addr), dial(t, addr)
	io.WriteString(a, "HELLO 3 SETNAME first\r\nSELECT 4\r\nCLIENT REPLY ON\r\n")
	io.WriteString(b, "PING\r\n")
	expect(t, b, "+PONG\r\n")
	var line string
	eventually(t, "the other client is listed", func() bool {
		io.WriteString(b, "CLIENT LIST TYPE normal\r\n")
		var n int
		fmt.Fscanf(b, "$%d\r\n", &n)
		text := make([]byte, n+2)
		io.ReadFull(b, text)
		for l := range strings.SplitSeq(string(text), "\n") {
			if strings.Contains(l, "name=first") {
				line = l
			}
		}
		return strings.Contains(line, "cmd=client|reply")
	})
	if !strings.Contains(line, " db=4 ") || !strings.HasSuffix(line, " resp=3") || !strings.Contains(line, "addr="+a.LocalAddr().String()) {
		t.Errorf("%q", line)
	}
}
