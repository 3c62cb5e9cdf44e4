package resp

import (
	"syscall"
	"time"
)

// lastCall is for how long a connection is still read while the server drains. It is
// longer than what a busy client takes to its next request, which may be on its way.
const lastCall = 100 * time.Millisecond

// Drain stops accepting, closes the connections that are idle, lets the others
// answer what they have read and one request more that is on its way, and closes
// them. It returns when all are closed, after at most d; what is still open then is
// cut.
func (s *Server) Drain(d time.Duration) {
	s.draining.Store(true)
	s.stop()
	for _, c := range s.snapshot() {
		c.nc.SetReadDeadline(time.Now().Add(s.lastCall)) // wakes it if it waits for its client
	}
	all := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(all)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-all:
	case <-t.C:
		s.cut()
	}
}

// over says, while the server drains, that the connection has had its last call. If not,
// it is read once more.
func (c *conn) over() bool {
	begun := c.s != nil && c.s.r < c.s.w // a request of which more must come
	if c.last && !begun {
		return true
	}
	if c.until.IsZero() {
		c.until = time.Now().Add(c.srv.lastCall)
	}
	c.nc.SetReadDeadline(c.until)
	return false
}

// seal has what is written from now on leave together with the end of the stream: a
// client that looks whether its connection is still good, before it sends the next
// request, must not look in between.
func (c *conn) seal() {
	c.last = true
	if c.rc != nil {
		c.rc.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1) })
	}
}

// Close stops accepting and cuts all connections. It does not wait for them.
func (s *Server) Close() error {
	s.stop()
	s.cut()
	return nil
}

// stop closes the listeners. No connection is admitted after it.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for ln := range s.listeners {
		ln.Close()
	}
}

func (s *Server) cut() {
	for _, c := range s.snapshot() {
		c.nc.Close()
	}
}
