package resp

import "time"

// largeHalf is the length above which a half-sent command keeps its read buffer.
const largeHalf = 4 << 10

// wholeWithin is how long a half-sent command may stay large: it is memory that
// others could use, and no client takes so long.
const wholeWithin = 60 * time.Second

// half is a command of which more must come, while its connection waits. It takes
// about as much memory as was sent: the scratch goes back to the pool meanwhile.
type half struct {
	in     []byte // what was sent; the first byte is the first of the command
	own    bool   // in is a read buffer, with room behind it
	parser parser
}

// park puts what the window holds into h, and leaves the scratch as a new one is.
func (s *scratch) park(h *half) {
	window := s.in[s.r:s.w]
	h.own = len(window) > largeHalf
	if h.own {
		n := copy(s.in, window)
		h.in = s.in[:n]
		s.in, s.spare = s.spare, nil
	} else {
		h.in = append([]byte(nil), window...)
	}
	h.parser = s.parser
	h.parser.spans = append([]span(nil), s.parser.spans...)
	s.r, s.w = 0, 0
	s.parser.begin()
}

// resume brings the window back.
func (s *scratch) resume(h *half) {
	spans := s.parser.spans[:0]
	s.parser = h.parser
	s.parser.spans = append(spans, h.parser.spans...)
	if h.own {
		s.spare, s.in = s.in, h.in[:cap(h.in)]
		s.r, s.w = 0, len(h.in)
	} else {
		s.r, s.w = 0, copy(s.in, h.in)
	}
	h.in = nil
}

// park gives the scratch back while the connection waits for its client. False: what
// is half sent is more than there is room for.
func (c *conn) park() bool {
	s := c.s
	if s.r < s.w {
		s.park(&c.half)
	}
	c.srv.pool.put(s)
	c.s = nil
	return c.in.hold(cap(c.half.in))
}

// setDeadline sets until when the next bytes must come.
func (c *conn) setDeadline() {
	idle, large := c.srv.cfg.IdleTimeout, c.s != nil && c.s.w-c.s.r > largeHalf
	if !large {
		c.whole = time.Time{}
	}
	if !large && idle == 0 {
		if c.timed {
			c.timed = false
			c.nc.SetReadDeadline(time.Time{})
		}
		return
	}
	now := time.Now()
	if large && c.whole.IsZero() {
		c.whole = now.Add(c.srv.wholeWithin)
	}
	until := c.whole
	if by := now.Add(idle); idle > 0 && (until.IsZero() || by.Before(until)) {
		until = by
	}
	c.timed = true
	c.nc.SetReadDeadline(until)
}
