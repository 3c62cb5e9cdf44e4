package resp

import "time"

// Drain stops accepting, closes the connections that are idle, lets the others
// answer what they have read, and closes them. It returns when all are closed,
// after at most d; what is still open then is cut.
func (s *Server) Drain(d time.Duration) {
	s.draining.Store(true)
	s.stop()
	for _, c := range s.snapshot() {
		c.nc.SetReadDeadline(time.Unix(1, 0)) // wakes it if it waits for its client
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
