package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"limitd/algo"
	"limitd/limiter"
)

// fakeLimiter keeps Do's contract in memory, with a clock that tests move.
type fakeLimiter struct {
	mu      sync.Mutex
	now     int64
	tables  [limiter.Namespaces]map[string]record
	dos     []int             // calls of each Do
	limits  map[string]record // under limit expressions
	exprs   limiter.Limits
	status  map[string]limiter.Status // by key: what goes wrong
	panicOn string                    // a key
	gate    chan struct{}             // Do waits for it, if set
	entered chan struct{}             // told when a Do waits
}

type record struct {
	state  []byte
	expiry int64
}

func newFakeLimiter() *fakeLimiter {
	l := &fakeLimiter{now: 1_700_000_000e9, status: map[string]limiter.Status{}, limits: map[string]record{}}
	for i := range l.tables {
		l.tables[i] = map[string]record{}
	}
	return l
}

func (l *fakeLimiter) live(ns uint8, key []byte) (record, bool) {
	r, ok := l.tables[ns][string(key)]
	return r, ok && r.expiry > l.now
}

func (l *fakeLimiter) Do(c *limiter.Chunk) {
	if l.gate != nil {
		l.entered <- struct{}{}
		<-l.gate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dos = append(l.dos, len(c.Calls))
	for i := range c.Calls {
		call := &c.Calls[i]
		if l.panicOn != "" && string(call.Key) == l.panicOn {
			panic("as the test wants it")
		}
		if s := l.status[string(call.Key)]; s != limiter.OK {
			call.Status = s
			continue
		}
		l.call(call)
	}
}

func (l *fakeLimiter) call(c *limiter.Call) {
	keys := append([][]byte{c.Key}, c.More...)
	switch c.Op {
	case limiter.TakeAll, limiter.List:
		l.several(c)
	case limiter.Take:
		if c.Limit.Algorithm != algo.Throttle {
			l.take(c)
			return
		}
		r, ok := l.live(c.NS, c.Key)
		if !ok {
			r.state = nil
		}
		v, e := c.Limit.Decide(r.state, l.now, 0, c.Cost, nil)
		c.Verdict = v
		if e.Op == algo.Replace {
			l.tables[c.NS][string(c.Key)] = record{bytes.Clone(e.State), e.Expiry}
		}
	case limiter.Reset, limiter.Exists:
		for _, k := range keys {
			if _, ok := l.live(c.NS, k); ok || l.forget(c.NS, k, c.Op == limiter.Reset) {
				c.N++
				if c.Op == limiter.Reset {
					delete(l.tables[c.NS], string(k))
				}
			}
		}
	case limiter.Type:
		if _, ok := l.live(c.NS, c.Key); ok {
			c.N = 1
		}
	case limiter.TTL:
		c.N = limiter.NoKey
		if r, ok := l.live(c.NS, c.Key); ok {
			c.N = r.expiry - l.now
		}
	case limiter.Flush:
		clear(l.tables[c.NS])
	case limiter.FlushAll:
		for _, t := range l.tables {
			clear(t)
		}
	}
}

func (l *fakeLimiter) Size(ns uint8) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.tables[ns] {
		if _, ok := l.live(ns, []byte(k)); ok {
			n++
		}
	}
	return n
}

// Scan goes through the keys in order; the cursor is the place in it.
func (l *fakeLimiter) Scan(ns uint8, cursor uint64, count int) (out [][]byte, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for k := range l.tables[ns] {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i := int(min(cursor, uint64(len(keys)))); i < len(keys); i++ {
		if len(out) == count {
			return out, uint64(i)
		}
		out = append(out, []byte(keys[i]))
	}
	return out, 0
}

// Memory says that a record takes 100 bytes.
func (l *fakeLimiter) Memory(ns uint8, key []byte) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.live(ns, key); ok {
		n += 100
	}
	for name, r := range l.limits {
		if strings.HasPrefix(name, recordKey(ns, key, nil)) && r.expiry > l.now {
			n += 100
		}
	}
	return n
}

func (l *fakeLimiter) Stats() limiter.Stats {
	return limiter.Stats{Allowed: 7, Denied: 5, DeniedLocal: 3, Keys: 2, TableBytes: 4096, Rounds: 4, RoundCalls: 10}
}

// chunks is how many calls each Do had.
func (l *fakeLimiter) chunks() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.dos)
}

type fakeAdmin struct {
	status  Status
	err     error
	changes []Change // that were asked for
}

func newFakeAdmin() *fakeAdmin {
	return &fakeAdmin{status: Status{
		ID: "n1", RaftID: "n1-abc", LeaderID: "n2", LeaderAddr: "127.0.0.1:6382", Role: "follower", ClusterID: "c1",
		Generation: 1, Term: 3, Commit: 41, Applied: 40, Last: 39, Time: 1_700_000_000e9 + 1, Offset: 5e6, WallOffset: -3e6,
		Voters: 3, DiskFree: 1 << 30, Ready: true,
	}}
}

func (a *fakeAdmin) Status() Status { return a.status }

func (a *fakeAdmin) Nodes() []NodeInfo {
	return []NodeInfo{
		{ID: "n1", RaftID: "n1-abc", Resp: "127.0.0.1:6381", Peer: "127.0.0.1:7381", Role: "voter", ContactMS: 12, Applied: 40, Version: "dev"},
		{ID: "n2", RaftID: "n2-def", Resp: "127.0.0.1:6382", Peer: "127.0.0.1:7382", Role: "leader", Applied: 41, Version: "dev"},
	}
}

func (a *fakeAdmin) Change(ch Change) error {
	a.changes = append(a.changes, ch)
	switch ch.ID {
	case "nobody":
		return errors.New("no member is called nobody")
	case "soon":
		return fmt.Errorf("no leader is known: %w", ErrNotNow)
	}
	return a.err
}

func (a *fakeAdmin) Hashes() []HashPoint { return []HashPoint{{256, 0xabc}, {300, 1<<63 + 1}} }

func (a *fakeAdmin) SaveSnapshot() (string, error) { return "/var/lib/limitd/state.db", a.err }

// quiet discards what a server logs.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// session is a client without a connection: its replies go to a buffer.
type session struct {
	client
	limiter *fakeLimiter
	admin   *fakeAdmin
	replies bytes.Buffer
	rest    []byte // input that is not whole yet
}

func newSession(tb testing.TB, cfg Config) *session {
	tb.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	s := &session{limiter: newFakeLimiter(), admin: newFakeAdmin()}
	s.use(NewServer(cfg, s.limiter, s.admin))
	return s
}

// use makes the session one of the server.
func (s *session) use(srv *Server) {
	s.srv, s.out, s.id, s.s = srv, &s.replies, 1, srv.pool.get()
	s.addr, s.laddr, s.since = "127.0.0.1:50000", "127.0.0.1:6380", time.Now()
	s.proto.Store(2)
	s.client.start()
}

// feed is a read of input. It returns the replies so far and forgets them.
func (s *session) feed(input []byte) (string, error) {
	s.rest = append(s.rest, input...)
	var err error
	for more := true; more && err == nil; {
		var n int
		n, more, err = s.answer(s.rest)
		s.rest = s.rest[n:]
	}
	out := s.replies.String()
	s.replies.Reset()
	return out, err
}

// commandBytes is a command as clients send it.
func commandBytes(args ...string) []byte {
	b := header(nil, '*', len(args))
	for _, a := range args {
		b = header(b, '$', len(a))
		b = append(append(b, a...), "\r\n"...)
	}
	return b
}

// do sends one command and returns its reply.
func (s *session) do(args ...string) string {
	out, _ := s.feed(commandBytes(args...))
	return out
}

// listen serves on loopback until the test ends.
func listen(tb testing.TB, cfg Config, l Limiter) (*Server, string) {
	tb.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := NewServer(cfg, l, newFakeAdmin())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	tb.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
	return s, ln.Addr().String()
}

// dial connects; every read and write of a test must be over in a while.
func dial(tb testing.TB, addr string) net.Conn {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(15 * time.Second))
	tb.Cleanup(func() { c.Close() })
	return c
}

// expect reads exactly want.
func expect(tb testing.TB, c net.Conn, want string) {
	tb.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil {
		tb.Fatalf("read %q, then %v; want %q", got[:n], err, want)
	}
	if string(got) != want {
		tb.Fatalf("read %q, want %q", got, want)
	}
}

// expectClosed reads the rest, which must be want, and the end.
func expectClosed(tb testing.TB, c net.Conn, want string) {
	tb.Helper()
	got, err := io.ReadAll(c)
	if string(got) != want {
		tb.Fatalf("read %q (%v), want %q and the end", got, err, want)
	}
	var t interface{ Timeout() bool }
	if errors.As(err, &t) && t.Timeout() {
		tb.Fatal("the connection was not closed")
	}
}

// eventually polls a condition.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("not in time: %s", what)
		}
	}
}
