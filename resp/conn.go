package resp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/tidwall/redcon"
)

// conn is one connection and its goroutine.
//
// While it waits for its client it holds no buffers but what was half sent. The read
// is tried first, with a scratch of the pool; if there is nothing, the scratch goes
// back and the goroutine parks in the poller. So thousands of idle connections cost little
// more than their goroutines, and a busy one makes no more system calls than a
// plain Read.
type conn struct {
	client
	nc net.Conn
	rc syscall.RawConn // nil: not a socket
	ob outbox

	half  half
	in    share     // of the budget: half, or what a command has outgrown the read size by
	whole time.Time // until when a large half-sent command must be whole
	timed bool      // there is a deadline

	try     func(fd uintptr) bool // c.tryRead
	n       int                   // what it read
	readErr error

	until time.Time // while the server drains: read no longer
	last  bool      // what was read is the last
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{nc: nc}
	c.client.srv = s
	c.client.out = &c.ob
	c.since = time.Now()
	c.used.Store(int64(time.Since(s.started)))
	c.proto.Store(2)
	c.addr, c.laddr = nc.RemoteAddr().String(), nc.LocalAddr().String()
	if a, err := netip.ParseAddrPort(c.addr); err == nil {
		c.ip = a.Addr().Unmap()
	}
	if t, ok := nc.(*net.TCPConn); ok {
		t.SetKeepAliveConfig(keepAlive)
	}
	if sc, ok := nc.(syscall.Conn); ok {
		c.rc, _ = sc.SyscallConn()
	}
	c.client.start()
	c.in.of, c.ob.held.of = &s.buffers, &s.buffers
	c.ob.init(nc, c.rc, s.cfg.WriteTimeout, s.cfg.OutputBuffer)
	c.try = c.tryRead
	return c
}

// serve answers the client until one side has had enough.
func (c *conn) serve() {
	defer c.srv.remove(c)
	err := c.run()
	c.in.hold(0)
	if c.s != nil {
		c.srv.pool.put(c.s)
		c.s = nil
	}
	switch {
	case err == errAlien:
		c.srv.tellOfHTTP(c.addr)
		c.nc.Close()
	case err == errQuit, err == errDraining, err == errGuessing, errors.As(err, new(protocolError)), errors.As(err, new(panicError)):
		c.ob.wait()
		linger(c.nc)
	case err == errBuffers:
		c.srv.closedFor(c.addr, err)
		c.ob.Write(redcon.AppendError(nil, "ERR "+err.Error()))
		linger(c.nc)
	case err == io.EOF: // perhaps it still reads: printf … | nc
		c.ob.wait()
		c.nc.Close()
	default:
		c.nc.Close()
	}
}

var errDraining = errors.New("the server is draining")

type panicError struct{ value any }

func (e panicError) Error() string { return "panic" }

// run reads and answers until an error. A panic is the end of this connection
// only; what was answered before it is written.
func (c *conn) run() (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.srv.log.Error("a command panicked; its connection is closed", "client", c.addr, "panic", v, "stack", string(debug.Stack()))
			if c.s != nil {
				c.flush()
				c.s = nil // not to be used again
			}
			err = panicError{v}
		}
	}()
	for {
		if err := c.read(); err != nil {
			return err
		}
		for more := true; more; {
			s := c.s
			n, again, err := c.answer(s.in[s.r:s.w])
			if err != nil {
				return err
			}
			if s.r += n; n > 0 {
				c.whole = time.Time{}
			}
			more = again
		}
	}
}

// read waits for bytes and adds them to the window.
func (c *conn) read() error {
	c.setDeadline()
	if c.srv.draining.Load() && c.over() { // after the deadline, which Drain may have set
		return errDraining
	}
	c.n, c.readErr = 0, nil
	if c.rc != nil {
		if err := c.rc.Read(c.try); err != nil {
			c.readErr = err
		}
	} else if room := c.room(); room != nil {
		c.n, c.readErr = c.nc.Read(room)
	} else {
		c.readErr = errBuffers
	}
	if c.n > 0 {
		if c.srv.draining.Load() {
			c.seal()
		}
		c.s.w += c.n
		c.srv.counters.bytesIn.Add(uint64(c.n))
		return nil
	}
	if errors.Is(c.readErr, os.ErrDeadlineExceeded) && c.srv.draining.Load() {
		return errDraining
	}
	return c.readErr
}

// tryRead reads what is there; false if there is nothing yet.
func (c *conn) tryRead(fd uintptr) bool {
	room := c.room()
	if room == nil {
		c.readErr = errBuffers
		return true
	}
	for {
		n, err := syscall.Read(int(fd), room)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			if !c.park() {
				c.readErr = errBuffers
				return true
			}
			return false
		case err != nil:
			c.readErr = os.NewSyscallError("read", err)
		case n == 0:
			c.readErr = io.EOF
		default:
			c.n = n
		}
		return true
	}
}

// room takes a scratch if there is none, and returns where to read; nil if there is
// no memory for more of a half-sent command.
func (c *conn) room() []byte {
	if c.s == nil {
		c.s = c.srv.pool.get()
		c.s.parser.strict = c.user() == nil
		if c.half.in != nil {
			c.s.resume(&c.half)
		}
	}
	return c.s.room(max(readSize, c.srv.cfg.MaxRequestBytes), &c.in)
}

// clients is the list of sessions, oldest first.
func (s *Server) clients() []*client {
	conns := s.snapshot()
	list := make([]*client, len(conns))
	for i, c := range conns {
		list[i] = &c.client
	}
	return list
}
