package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dialTimeout = 2 * time.Second // connect and handshake of a link
	userTimeout = 30 * time.Second
)

// keepAlive finds a dead peer on an idle connection within about 11 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// dial connects to the member at addr and makes the handshake, all within timeout.
// An error means that nothing but the handshake was sent.
func (p *peers) dial(ctx context.Context, addr string, purpose uint8, timeout time.Duration) (net.Conn, error) {
	return p.dialFor(ctx, addr, p.cfg.Lookup(addr), purpose, timeout)
}

// dialFor is dial for the node with raft id expect; "": for whoever answers.
func (p *peers) dialFor(ctx context.Context, addr, expect string, purpose uint8, timeout time.Duration) (net.Conn, error) {
	deadline := time.Now().Add(timeout)
	d := net.Dialer{Deadline: deadline, KeepAliveConfig: keepAlive, Control: guard(p.cfg.Insecure, addr)}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial peer %q: %w", addr, err)
	}
	// Close must not wait for a peer that is silent in the handshake.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	setUserTimeout(conn)
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

// guard refuses addresses beyond loopback unless insecure is set. It sees the
// address that is really used, after every name was resolved.
func guard(insecure bool, name string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		if insecure {
			return nil
		}
		if ap, err := netip.ParseAddrPort(address); err == nil && ap.Addr().Unmap().IsLoopback() {
			return nil
		}
		return fmt.Errorf("peer address %q (%s) is beyond this machine: %w", name, address, errInsecure)
	}
}

var errInsecure = errors.New("peers talk unencrypted and unauthenticated: set peers.insecure = true if the network between them is trusted, or use loopback addresses")

// forgetAtClose has the kernel drop what it has not yet delivered when the connection
// is closed. Else it goes on trying, and calls whose callers have long been told that
// nobody knows arrive when the network is whole again, many seconds later.
func forgetAtClose(conn net.Conn) {
	if tc, ok := conn.(*net.TCPConn); ok {
		tc.SetLinger(0)
	}
}

// setUserTimeout ends a connection whose peer acknowledges nothing for
// userTimeout: keepalive is silent while data is unacknowledged.
func setUserTimeout(conn net.Conn) {
	tc, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if rc, err := tc.SyscallConn(); err == nil {
		rc.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		})
	}
}
