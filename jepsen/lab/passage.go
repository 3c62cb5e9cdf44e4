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
	near, far net.Conn
	gone      chan struct{}
	once      sync.Once
}

// reset breaks both ends. To those there it looks like a lost machine that came back.
func (c *passage) reset() {
	c.once.Do(func() {
		close(c.gone)
		reset(c.near)
		reset(c.far)
	})
}

func reset(c net.Conn) {
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// accept takes connections at a door until it is closed.
func (p *proxies) accept(d door, ln net.Listener) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		p.alive.Go(func() { p.admit(d, near) })
	}
}

// longestDial is for how long a connection across a cut is left in silence.
const longestDial = 5 * time.Second

// admit connects what has dialed a door with what is behind it. No connection is made
// across a cut: it hears nothing while that lasts, and then has to dial again.
func (p *proxies) admit(d door, near net.Conn) {
	if !p.isOpen(d) {
		await(p, time.After(longestDial), func() bool { return p.isOpen(d) })
		reset(near)
		return
	}
	far, err := net.DialTimeout("tcp", p.address(d.to, d.port), time.Second)
	if err != nil {
		reset(near)
		return
	}
	p.carry(d, near, far)
}

// carry moves bytes between two ends until both have none, or the passage is reset.
func (p *proxies) carry(d door, near, far net.Conn) {
	c := &passage{door: d, near: near, far: far, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.reset()
		return
	}
	p.open[c] = true
	p.alive.Go(func() {
		var both sync.WaitGroup
		both.Go(func() { p.pump(c, d.from, d.to, c.near, c.far) })
		both.Go(func() { p.pump(c, d.to, d.from, c.far, c.near) })
		both.Wait()
		c.reset()
		p.mu.Lock()
		delete(p.open, c)
		p.mu.Unlock()
	})
}

// pump moves the bytes of one direction, and how it ends, whenever that is let through.
func (p *proxies) pump(c *passage, from, to string, in, out net.Conn) {
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
			out.(*net.TCPConn).CloseWrite()
			return
		default:
			c.reset()
			return
		}
	}
}

// let waits until one direction is let through, or until the passage is gone: false.
func (p *proxies) let(c *passage, from, to string) bool {
	return await(p, c.gone, func() bool { return p.passes(from, to, c.door.port) })
}
