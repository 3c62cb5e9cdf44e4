package lab

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// passage is one connection through a proxy: near is the end that dialed.
type passage struct {
	door      door
	near, far *net.TCPConn
	gone      chan struct{}
	once      sync.Once
}

// reset breaks both ends. To those there it looks like a lost machine that came back.
func (c *passage) reset() {
	c.once.Do(func() {
		close(c.gone)
		for _, end := range []*net.TCPConn{c.near, c.far} {
			end.SetLinger(0)
			end.Close()
		}
	})
}

// accept takes connections at a door until it is closed.
func (p *proxies) accept(d door, ln net.Listener) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		p.alive.Go(func() { p.carry(d, near.(*net.TCPConn)) })
	}
}

// carry connects what has dialed a door with what is behind it, if the door is open
// both ways: no connection is made across a cut.
func (p *proxies) carry(d door, near *net.TCPConn) {
	refuse := func() {
		near.SetLinger(0)
		near.Close()
	}
	if !p.admitted(d, near) {
		refuse()
		return
	}
	far, err := net.DialTimeout("tcp", p.address(d.to, d.port), time.Second)
	if err != nil {
		refuse()
		return
	}
	c := &passage{door: d, near: near, far: far.(*net.TCPConn), gone: make(chan struct{})}
	p.mu.Lock()
	p.open[c] = true
	if p.closed {
		c.reset()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(c, d.from, d.to, c.near, c.far) })
	both.Go(func() { p.pump(c, d.to, d.from, c.far, c.near) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	c.reset()
}

// admitted says that a connection may be made. One that meets a cut hears nothing
// until its dialer gives up.
func (p *proxies) admitted(d door, near *net.TCPConn) bool {
	if p.await(d, expired) {
		return true
	}
	near.SetReadDeadline(time.Now().Add(longestDial))
	io.Copy(io.Discard, near)
	return false
}

// longestDial is for how long a connection across a cut is left in silence.
const longestDial = 5 * time.Second

// expired is no patience at all.
var expired = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// pump moves the bytes of one direction, and how it ends, whenever that is let through.
func (p *proxies) pump(c *passage, from, to string, in, out *net.TCPConn) {
	for buf := make([]byte, 32<<10); ; {
		n, err := in.Read(buf)
		if !p.let(c, from, to) {
			return
		}
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return // how the other end broke is read, and told, by the other pump
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			out.CloseWrite()
			return
		default:
			c.reset()
			return
		}
	}
}

// let waits until one direction is let through, or until the passage is gone: false.
func (p *proxies) let(c *passage, from, to string) bool {
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if p.passes(from, to, c.door.port) {
			return true
		}
		select {
		case <-changed:
		case <-c.gone:
			return false
		}
	}
}
