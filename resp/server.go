package resp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// keepAlive finds peers that are gone without a word within two minutes.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 20 * time.Second, Count: 3}

// Server serves RESP on one or more listeners.
type Server struct {
	cfg     Config
	limiter Limiter
	admin   Admin
	log     *slog.Logger

	table    *table
	pool     pool
	counters counters
	codes    errorCodes
	users    map[string]*User // by name; none: nobody needs a password
	failures failures
	buffers  budget
	turns    chan struct{} // taken by those whose chunk is much work
	rates    rates
	started  time.Time
	runID    string

	draining    atomic.Bool
	lastCall    time.Duration
	wholeWithin time.Duration
	said        seldom
	saidHTTP    seldom
	wg          sync.WaitGroup // connections

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	conns     map[int64]*conn
	perIP     map[netip.Addr]int
	lastID    int64
	turning   int // refused connections that are being told so
}

// NewServer makes a server. It does nothing until [Server.Serve].
func NewServer(cfg Config, l Limiter, a Admin) *Server {
	cfg = cfg.withDefaults()
	cfg.MaxRequestBytes = min(cfg.MaxRequestBytes, 1<<30) // a place in a request is an int32
	var id [20]byte
	rand.Read(id[:])
	s := &Server{
		cfg: cfg, limiter: l, admin: a, log: cfg.Logger,
		table:       newTable(cfg.Trace),
		pool:        pool{bounds: bounds{cfg.MaxArgs, cfg.MaxArgBytes, cfg.MaxRequestBytes}},
		started:     time.Now(),
		lastCall:    lastCall,
		wholeWithin: wholeWithin,
		buffers:     budget{max: cfg.MaxBuffers},
		turns:       make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		runID:       hex.EncodeToString(id[:]),
		listeners:   map[net.Listener]struct{}{},
		conns:       map[int64]*conn{},
		perIP:       map[netip.Addr]int{},
		users:       map[string]*User{},
		failures:    failures{pause: time.Sleep, now: time.Now, of: map[netip.Addr]failure{}},
	}
	for _, u := range cfg.Users {
		s.users[u.Name] = &u
	}
	return s
}

// Serve accepts connections until Close or Drain; it returns nil after those,
// and the listener's error if the listener was closed by someone else. It closes
// the listener.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.listeners[ln] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, ln)
		s.mu.Unlock()
	}()

	var wait backoff
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			wait.reset()
			s.admit(nc)
		case s.stopped():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			d, say := wait.next(time.Now())
			if say {
				s.log.Error("accepting a connection failed; trying again", "addr", ln.Addr().String(), "err", err)
			}
			time.Sleep(d)
		}
	}
}

// admit starts serving a connection, or refuses it.
func (s *Server) admit(nc net.Conn) {
	s.counters.accepted.Add(1)
	c := newConn(s, nc)
	s.mu.Lock()
	full, closed := s.full(c.ip), s.closed
	if full == "" && !closed {
		s.lastID++
		c.id = s.lastID
		s.conns[c.id] = c
		s.perIP[c.ip]++
		s.wg.Add(1)
	}
	s.mu.Unlock()
	switch {
	case closed:
		nc.Close()
	case full != "":
		s.counters.rejected.Add(1)
		s.turnAway(nc, full)
	default:
		go c.serve()
	}
}

// full says why a connection from ip cannot be taken; "" if it can.
func (s *Server) full(ip netip.Addr) string {
	switch {
	case len(s.conns) >= s.cfg.MaxClients:
		return "ERR max number of clients reached"
	case s.cfg.MaxClientsPerIP > 0 && ip.IsValid() && s.perIP[ip] >= s.cfg.MaxClientsPerIP:
		return "ERR max number of clients reached for this address"
	}
	return ""
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c.id)
	if s.perIP[c.ip]--; s.perIP[c.ip] <= 0 {
		delete(s.perIP, c.ip)
	}
	s.mu.Unlock()
	s.wg.Done()
}

func (s *Server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// snapshot is the list of connections, oldest first.
func (s *Server) snapshot() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *conn) int { return int(a.id - b.id) })
	return list
}

// port is that of a listener; 0 if there is none.
func (s *Server) port() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ln := range s.listeners {
		if a, ok := ln.Addr().(*net.TCPAddr); ok {
			return a.Port
		}
	}
	return 0
}
