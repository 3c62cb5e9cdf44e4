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

// Network carries the connections between nodes: the machine's, or a simulated one.
// Its connections keep order and lose nothing but their end, as TCP's do; one whose
// peer is gone ends by itself, with an error, after some time.
type Network interface {
	Listen(ctx context.Context, addr string) (net.Listener, error)
	Dial(ctx context.Context, addr string, deadline time.Time) (net.Conn, error)
}

// machineNetwork is TCP on this machine.
type machineNetwork struct {
	insecure bool // peers.insecure
}

// userTimeout is for how long what was sent may stay unacknowledged.
const userTimeout = 30 * time.Second

// keepAlive finds a dead peer on an idle connection within about 11 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// Listen binds addr.
func (m machineNetwork) Listen(ctx context.Context, addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: m.guard(addr)}
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return machineListener{ln}, nil
}

// Dial connects to addr.
func (m machineNetwork) Dial(ctx context.Context, addr string, deadline time.Time) (net.Conn, error) {
	d := net.Dialer{Deadline: deadline, KeepAliveConfig: keepAlive, Control: m.guard(addr)}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	setUserTimeout(conn)
	return conn, nil
}

// machineListener accepts connections that end when their peer is silent.
type machineListener struct{ net.Listener }

func (l machineListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		setUserTimeout(conn)
	}
	return conn, err
}

// guard refuses addresses beyond loopback unless peers.insecure is set. It sees the
// address that is really used, after every name was resolved.
func (m machineNetwork) guard(name string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		if m.insecure {
			return nil
		}
		if ap, err := netip.ParseAddrPort(address); err == nil && ap.Addr().Unmap().IsLoopback() {
			return nil
		}
		return fmt.Errorf("peer address %q (%s) is beyond this machine: %w", name, address, errInsecure)
	}
}

var errInsecure = errors.New("peers talk unencrypted and unauthenticated: set peers.insecure = true if the network between them is trusted, or use loopback addresses")

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
