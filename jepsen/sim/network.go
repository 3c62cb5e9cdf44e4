package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// What a kernel does by itself.
const (
	window       = 256 << 10 // bytes on their way, or not yet read
	keepAliveEnd = 11 * time.Second
	unackedEnd   = 30 * time.Second
	synAgain     = time.Second
	slowestRTO   = 3 * time.Second // a stream that was cut goes on so much later, at most
)

// A packet on a healthy network takes from fastest to fastest and jitter.
const fastest, jitter = 200 * time.Microsecond, 300 * time.Microsecond

// network joins hosts by streams that keep order and lose nothing, as TCP's do: a
// cut holds a stream up, and what was sent before may arrive long after. Its mutex is
// never held while anything waits.
type network struct {
	mu    sync.Mutex
	rng   *rand.Rand
	hosts map[string]*host // by address
	paths map[path]*link
	conns map[*conn]struct{}
}

// host is a machine, as the network sees it.
type host struct {
	addr     string
	off      bool // without power: takes nothing, tells nobody
	frozen   bool // its process neither sends nor reads; the kernel goes on
	listener *listener
}

// path is a direction between two addresses.
type path struct{ from, to string }

// link is what a path does to what goes over it.
type link struct {
	from, to      *host
	cut           bool
	since         time.Time // of the cut
	delay, jitter time.Duration
}

func newNetwork(rng *rand.Rand, addrs []string) *network {
	n := &network{rng: rng, hosts: map[string]*host{}, paths: map[path]*link{}, conns: map[*conn]struct{}{}}
	for _, a := range addrs {
		n.hosts[a] = &host{addr: a}
	}
	for _, a := range addrs {
		for _, b := range addrs {
			n.paths[path{a, b}] = &link{from: n.hosts[a], to: n.hosts[b], delay: fastest, jitter: jitter}
		}
	}
	return n
}

// latency of one packet. n.mu is held, as in all that follows with small letters and
// no lock.
func (n *network) latency(l *link) time.Duration {
	return l.delay + time.Duration(n.rng.Int64N(int64(l.jitter)+1))
}

// open says that packets get through.
func (l *link) open() bool { return !l.cut && !l.from.off && !l.to.off }

// change alters paths or hosts; then streams that were held up go on.
func (n *network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	for c := range n.conns {
		c.pump()
		c.wake.Broadcast()
	}
}

// cut stops a path, or lets it go on.
func (n *network) cut(p path, cut bool) {
	l := n.paths[p]
	if l.cut == cut {
		return
	}
	now := time.Now()
	if l.cut = cut; cut {
		l.since = now
		return
	}
	late := min(now.Sub(l.since), slowestRTO)
	for c := range n.conns {
		if c.path == l {
			c.postpone(now.Add(time.Duration(n.rng.Int64N(int64(late) + 1))))
		}
	}
}

// healAll makes the network whole and fast.
func (n *network) healAll() {
	n.change(func() {
		for p, l := range n.paths {
			n.cut(p, false)
			l.delay, l.jitter = fastest, jitter
		}
		for _, h := range n.hosts {
			h.frozen = false
		}
	})
}

// reset breaks some of the connections over a path, at both ends.
func (n *network) reset(p path) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if c.path == n.paths[p] {
			c.fail(syscall.ECONNRESET)
			c.peer.fail(syscall.ECONNRESET)
		}
	}
}

// watch ends connections that have been silent for too long, until done.
func (n *network) watch(done <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
		}
		n.mu.Lock()
		for c := range n.conns {
			c.lookForSilence(time.Second)
		}
		n.mu.Unlock()
	}
}

// nic is the network as one process has it.
type nic struct {
	n     *network
	host  *host
	dead  chan struct{}
	conns map[*conn]struct{}
}

var errHostDead = errors.New("sim: this process is dead")

// attach gives a process the network.
func (n *network) attach(addr string) *nic {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &nic{n: n, host: n.hosts[addr], dead: make(chan struct{}), conns: map[*conn]struct{}{}}
}

// kill ends a process: its connections are closed by its kernel, or with the power
// gone they just are no more.
func (c *nic) kill(power bool) {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.isDead() {
		return
	}
	close(c.dead)
	c.host.off = power
	if c.host.listener != nil && c.host.listener.nic == c {
		c.host.listener.close()
	}
	for conn := range c.conns {
		if power {
			conn.vanish()
		} else {
			conn.shut()
		}
	}
}

func (c *nic) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// Listen implements cluster.Network.
func (c *nic) Listen(_ context.Context, addr string) (net.Listener, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	switch {
	case c.isDead():
		return nil, errHostDead
	case addr != c.host.addr:
		return nil, fmt.Errorf("listen on %s: %w", addr, syscall.EADDRNOTAVAIL)
	case c.host.listener != nil:
		return nil, fmt.Errorf("listen on %s: %w", addr, syscall.EADDRINUSE)
	}
	c.host.listener = &listener{nic: c, waiting: make(chan *conn, 128), closed: make(chan struct{})}
	return c.host.listener, nil
}

// Dial implements cluster.Network.
func (c *nic) Dial(ctx context.Context, addr string, deadline time.Time) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for {
		trip, there := c.roundTrip(addr)
		if err := c.sleep(ctx, trip); err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		if !there {
			continue
		}
		conn, err := c.connect(addr)
		if conn != nil {
			return conn, nil
		}
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
	}
}

// roundTrip is how long an attempt takes, and whether it gets an answer.
func (c *nic) roundTrip(addr string) (time.Duration, bool) {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := n.paths[path{c.host.addr, addr}], n.paths[path{addr, c.host.addr}]
	if there == nil || !there.open() || !back.open() || c.host.frozen {
		return synAgain, false
	}
	return n.latency(there) + n.latency(back), true
}

// connect makes the connection, if the way is still open; no connection and no error:
// it is not.
func (c *nic) connect(addr string) (*conn, error) {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := n.paths[path{c.host.addr, addr}], n.paths[path{addr, c.host.addr}]
	l := n.hosts[addr].listener
	switch {
	case c.isDead():
		return nil, errHostDead
	case !there.open() || !back.open():
		return nil, nil
	case l == nil || len(l.waiting) == cap(l.waiting):
		return nil, syscall.ECONNREFUSED
	}
	near, far := newConn(c, there), newConn(l.nic, back)
	near.peer, far.peer = far, near
	l.waiting <- far
	return near, nil
}

func (c *nic) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.dead:
		return errHostDead
	case <-t.C:
		return nil
	}
}

// listener is a host's.
type listener struct {
	nic     *nic
	waiting chan *conn
	closed  chan struct{}
	over    bool
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.nic.n.mu.Lock()
	defer l.nic.n.mu.Unlock()
	l.close()
	return nil
}

func (l *listener) close() {
	if l.over {
		return
	}
	l.over = true
	close(l.closed)
	l.nic.host.listener = nil
	for len(l.waiting) > 0 {
		(<-l.waiting).shut()
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return address(l.nic.host.addr) }

// address of a host.
type address string

func (a address) Network() string { return "sim" }
func (a address) String() string  { return string(a) }
