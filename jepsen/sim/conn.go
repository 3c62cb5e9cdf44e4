package sim

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection. Its fields are under the network's mutex.
type conn struct {
	nic  *nic
	path *link // of what it sends
	peer *conn
	wake sync.Cond // something has changed: bytes, room, an end, a deadline

	in  []byte // arrived and not yet read
	eof bool   // after in
	err error  // it has ended, for its own process

	out     []packet // on their way to the peer
	outSize int
	pumping bool // a timer is set for the first of them

	forget bool // at Close what was not delivered is dropped
	gone   bool // so is the machine that had it
	silent time.Duration

	readBy, writeBy deadline
}

// packet is on its way. Without data it is the end of the stream.
type packet struct {
	data    []byte
	reset   bool
	arrives time.Time
}

func newConn(n *nic, p *link) *conn {
	c := &conn{nic: n, path: p}
	c.wake.L = &n.n.mu
	n.conns[c], n.n.conns[c] = struct{}{}, struct{}{}
	return c
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n := c.nic.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch {
		case c.err != nil:
			return 0, c.err
		case c.nic.host.frozen:
		case len(c.in) > 0:
			k := copy(b, c.in)
			if c.in = c.in[k:]; len(c.in) == 0 {
				c.in = nil
			}
			c.peer.wake.Broadcast() // there is room
			return k, nil
		case c.eof:
			return 0, io.EOF
		}
		if c.readBy.over() {
			return 0, os.ErrDeadlineExceeded
		}
		c.wake.Wait()
	}
}

// Write implements net.Conn. It waits while too much is on its way.
func (c *conn) Write(b []byte) (sent int, err error) {
	n := c.nic.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(b) > 0 {
		room := window - c.outSize - len(c.peer.in)
		switch {
		case c.err != nil:
			return sent, c.err
		case c.writeBy.over():
			return sent, os.ErrDeadlineExceeded
		case room <= 0 || c.nic.host.frozen:
			c.wake.Wait()
			continue
		}
		k := min(room, len(b))
		c.send(packet{data: append([]byte(nil), b[:k]...)})
		b, sent = b[k:], sent+k
	}
	return sent, nil
}

// send puts a packet on its way, behind those before it.
func (c *conn) send(p packet) {
	p.arrives = time.Now().Add(c.nic.n.latency(c.path))
	if k := len(c.out); k > 0 && c.out[k-1].arrives.After(p.arrives) {
		p.arrives = c.out[k-1].arrives
	}
	c.out = append(c.out, p)
	c.outSize += len(p.data)
	c.pump()
}

// postpone has nothing arrive before at.
func (c *conn) postpone(at time.Time) {
	for i := range c.out {
		if c.out[i].arrives.Before(at) {
			c.out[i].arrives = at
		}
	}
}

// pump delivers what has arrived, and sets a timer for what comes next.
func (c *conn) pump() {
	n := c.nic.n
	for !c.pumping && len(c.out) > 0 && c.path.open() {
		p := c.out[0]
		if wait := time.Until(p.arrives); wait > 0 {
			c.pumping = true
			time.AfterFunc(wait, func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				c.pumping = false
				c.pump()
			})
			return
		}
		c.out = c.out[1:]
		c.outSize -= len(p.data)
		c.deliver(p)
	}
	c.release()
}

// deliver hands a packet to the other end's kernel.
func (c *conn) deliver(p packet) {
	to := c.peer
	switch {
	case to.gone || to.err != nil:
		if p.data != nil && to.path.open() {
			c.fail(syscall.ECONNRESET)
		}
		return
	case p.reset:
		to.fail(syscall.ECONNRESET)
	case p.data == nil:
		to.eof = true
	default:
		to.in = append(to.in, p.data...)
	}
	to.wake.Broadcast()
}

// fail ends a connection for its own process; nothing is sent any more.
func (c *conn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.in, c.out, c.outSize = nil, nil, 0
	c.wake.Broadcast()
	c.release()
}

// shut is a close: what was sent still goes, and then the end.
func (c *conn) shut() {
	if c.err != nil {
		return
	}
	c.err, c.in = net.ErrClosed, nil
	c.wake.Broadcast()
	if c.forget && !c.path.open() {
		c.out, c.outSize = nil, 0
		c.release()
		return
	}
	c.send(packet{reset: c.forget})
}

// vanish is the end of the machine: nobody is told.
func (c *conn) vanish() {
	c.gone = true
	c.fail(net.ErrClosed)
}

// release forgets a connection that has ended and has nothing left to deliver.
func (c *conn) release() {
	if c.err != nil && len(c.out) == 0 {
		delete(c.nic.conns, c)
		delete(c.nic.n.conns, c)
	}
}

// lookForSilence ends a connection over which nothing goes for too long. The orphan of
// a closed one is given up as well.
func (c *conn) lookForSilence(step time.Duration) {
	if c.path.open() && c.peer.path.open() {
		c.silent = 0
		return
	}
	c.silent += step
	if c.silent > unackedEnd || c.silent > keepAliveEnd && len(c.out) == 0 {
		c.fail(syscall.ETIMEDOUT)
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	n := c.nic.n
	n.mu.Lock()
	defer n.mu.Unlock()
	c.shut()
	return nil
}

// SetLinger is as that of a net.TCPConn; only 0 is asked for.
func (c *conn) SetLinger(sec int) error {
	n := c.nic.n
	n.mu.Lock()
	defer n.mu.Unlock()
	c.forget = sec == 0
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return address(c.path.from.addr) }
func (c *conn) RemoteAddr() net.Addr { return address(c.path.to.addr) }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.set(t, &c.readBy, &c.writeBy)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.set(t, &c.readBy)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.set(t, &c.writeBy)
	return nil
}

func (c *conn) set(t time.Time, all ...*deadline) {
	n := c.nic.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range all {
		d.set(t, c)
	}
	c.wake.Broadcast()
}

// deadline of reads or writes.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set moves the deadline. Whoever waits looks again when it has come.
func (d *deadline) set(t time.Time, c *conn) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.at = t; !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			c.nic.n.mu.Lock()
			defer c.nic.n.mu.Unlock()
			c.wake.Broadcast()
		})
	}
}
