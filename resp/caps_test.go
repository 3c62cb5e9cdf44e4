package resp

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestConnectionCap(t *testing.T) {
	s, addr := listen(t, Config{MaxClients: 2}, newFakeLimiter())
	a, b := dial(t, addr), dial(t, addr)
	for _, c := range []net.Conn{a, b} {
		io.WriteString(c, "PING\r\n")
		expect(t, c, "+PONG\r\n")
	}
	c := dial(t, addr)
	io.WriteString(c, "PING\r\n") // clients speak first; the refusal must reach them all the same
	expectClosed(t, c, "-ERR max number of clients reached\r\n")
	if n := s.counters.rejected.Load(); n != 1 {
		t.Errorf("%d rejected", n)
	}
	a.Close()
	eventually(t, "there is room again", func() bool { return s.connected() == 1 })
	d := dial(t, addr)
	io.WriteString(d, "PING\r\n")
	expect(t, d, "+PONG\r\n")
}

func TestConnectionCapOfOneAddress(t *testing.T) {
	s, addr := listen(t, Config{MaxClientsPerIP: 1}, newFakeLimiter())
	a := dial(t, addr)
	io.WriteString(a, "PING\r\n")
	expect(t, a, "+PONG\r\n")
	expectClosed(t, dial(t, addr), "-ERR max number of clients reached for this address\r\n")
	other, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	io.WriteString(other, "PING\r\n")
	expect(t, other, "+PONG\r\n")
	a.Close()
	other.Close()
	eventually(t, "all are forgotten", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.perIP) == 0
	})
}

func TestIdleTimeout(t *testing.T) {
	_, addr := listen(t, Config{IdleTimeout: 50 * time.Millisecond}, newFakeLimiter())
	c := dial(t, addr)
	io.WriteString(c, "PING\r\n*1\r\n$4")
	expectClosed(t, c, "+PONG\r\n")
}

// An idle connection holds no buffers, so ten thousand of them are no burden.
// What is counted is the server's side alone: the clients are bare sockets.
func TestIdleConnectionsAreCheap(t *testing.T) {
	const n = 2000 // both ends are in this process; the end-to-end tests hold 10,000
	_, addr := listen(t, Config{}, newFakeLimiter())
	_, p, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(p)
	used := func() uint64 {
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := used()
	fds := make([]int, 0, n)
	defer func() {
		for _, fd := range fds {
			syscall.Close(fd)
		}
	}()
	for i := range n {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		local := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 1, byte(i % 200)}} // enough ports
		if err := errors.Join(syscall.Bind(fd, local), syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})); err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Write(fd, []byte("PING\r\n")); err != nil {
			t.Fatal(err)
		}
		var pong [16]byte
		if m, err := syscall.Read(fd, pong[:]); err != nil || string(pong[:m]) != "+PONG\r\n" {
			t.Fatalf("connection %d: %q, %v", i, pong[:m], err)
		}
	}
	each := float64(used()-before) / float64(n)
	t.Logf("%d idle connections: %.0f bytes each", n, each)
	if each > 16<<10 {
		t.Errorf("an idle connection costs %.0f bytes", each)
	}
	c := dial(t, addr)
	io.WriteString(c, "PING\r\n")
	expect(t, c, "+PONG\r\n")
}
