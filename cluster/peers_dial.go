package cluster

import (
	"context"
	"fmt"
	"net"
	"time"
)

const dialTimeout = 2 * time.Second // connect and handshake of a link

// dial connects to the member at addr and makes the handshake, all within timeout.
// An error means that nothing but the handshake was sent.
func (p *peers) dial(ctx context.Context, addr string, purpose uint8, timeout time.Duration) (net.Conn, error) {
	return p.dialFor(ctx, addr, p.cfg.Lookup(addr), purpose, timeout)
}

// dialFor is dial for the node with raft id expect; "": for whoever answers.
func (p *peers) dialFor(ctx context.Context, addr, expect string, purpose uint8, timeout time.Duration) (net.Conn, error) {
	deadline := time.Now().Add(timeout)
	conn, err := p.cfg.Network.Dial(ctx, addr, deadline)
	if err != nil {
		return nil, fmt.Errorf("dial peer %q: %w", addr, err)
	}
	// Close must not wait for a peer that is silent in the handshake.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(deadline)
	err = p.introduce(conn, addr, expect, purpose)
	if !stop() && err == nil {
		err = errPeersClosed
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("peer %q: %w", addr, err)
	}
	conn.SetDeadline(time.Time{})
	return conn, nil
}

// forgetAtClose has the kernel drop what it has not yet delivered when the connection
// is closed. Else it goes on trying, and calls whose callers have long been told that
// nobody knows arrive when the network is whole again, many seconds later.
func forgetAtClose(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		c.SetLinger(0)
	}
}
