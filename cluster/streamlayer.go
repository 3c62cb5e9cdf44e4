package cluster

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// progressTimeout bounds each wait for the next bytes of a message that has
// begun. A node hears nothing else while it installs a snapshot, so a sender
// that stalls in the middle must not hold it for longer.
const progressTimeout = 10 * time.Second

var _ raft.StreamLayer = (*streamLayer)(nil)

// streamLayer gives raft's transport connections that have passed the handshake.
type streamLayer struct {
	p     *peers
	addr  peerAddr
	conns chan net.Conn

	ages      requestAges
	running   atomic.Bool // raft has called Accept: before, raft connections are refused
	closeOnce sync.Once
	closed    chan struct{}
}

func newStreamLayer(p *peers) *streamLayer {
	addr := peerAddr(p.cfg.Self.Peer)
	if _, port, err := net.SplitHostPort(string(addr)); err != nil || port == "0" {
		addr = peerAddr(p.Addr())
	}
	return &streamLayer{p: p, addr: addr, conns: make(chan net.Conn, raftBacklog), closed: make(chan struct{})}
}

// Dial connects to a member for raft.
func (s *streamLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.p.dial(s.p.ctx, string(address), purposeRaft, timeout)
}

// Accept waits for a connection that a member dialed for raft.
func (s *streamLayer) Accept() (net.Conn, error) {
	s.running.Store(true)
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// ready says whether raft takes connections.
func (s *streamLayer) ready() bool {
	select {
	case <-s.closed:
		return false
	default:
		return s.running.Load()
	}
}

// offer gives raft a connection, or closes it when raft does not keep up.
func (s *streamLayer) offer(c net.Conn) {
	select {
	case s.conns <- c:
		select {
		case <-s.closed:
			s.drain()
		default:
		}
	default:
		c.Close()
	}
}

// Close ends raft's side of the peer port. Calls go on.
func (s *streamLayer) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		s.drain()
	})
	return nil
}

// drain closes what waits to be accepted.
func (s *streamLayer) drain() {
	for {
		select {
		case c := <-s.conns:
			c.Close()
		default:
			return
		}
	}
}

// Addr is the address that raft tells the other members.
func (s *streamLayer) Addr() net.Addr { return s.addr }

// peerAddr is a peer address as it is configured: names stay names.
type peerAddr string

func (a peerAddr) Network() string { return "tcp" }
func (a peerAddr) String() string  { return string(a) }

// progressReader bounds each read inside a message by limit and leaves the wait
// for a message to begin unbounded. Its user clears inMessage when a message has
// ended. After an error it reads nothing more: the rest of a message that was cut
// off must not be taken for the next one. Not for concurrent readers.
type progressReader struct {
	net.Conn
	limit     time.Duration
	inMessage bool
	armed     bool // a read deadline is set
	err       error
}

func (r *progressReader) Read(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.inMessage {
		r.SetReadDeadline(time.Now().Add(r.limit))
		r.armed = true
	} else if r.armed {
		r.SetReadDeadline(time.Time{})
		r.armed = false
	}
	n, err := r.Conn.Read(b)
	if n > 0 {
		r.inMessage = true
	}
	r.err = err
	return n, err
}

// raftConn is a connection that a peer dialed for raft. Raft answers each message
// before it reads the next one, and without pipelining (MaxRPCsInFlight is 1) no
// peer sends the next one earlier. So a read that follows a read without a write
// between them is inside a message, and a write ends it. The first message has
// begun when the connection is made: raft dials when it has something to say.
type raftConn struct {
	progressReader
	release func()
	age     requestAge
}

func newRaftConn(c net.Conn, limit time.Duration, release func()) *raftConn {
	return &raftConn{progressReader: progressReader{Conn: c, limit: limit, inMessage: true}, release: release}
}

func (c *raftConn) Read(b []byte) (int, error) {
	n, err := c.progressReader.Read(b)
	if n > 0 {
		c.age.open.Store(true)
	}
	return n, err
}

func (c *raftConn) Write(b []byte) (int, error) {
	c.inMessage = false
	c.age.answer()
	return c.Conn.Write(b)
}

func (c *raftConn) Close() error {
	c.release()
	return nil
}
