package cluster

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"limitd/fsm"
)

// startPeers runs a peer port on loopback until the test ends.
func startPeers(t testing.TB, raftID string, change ...func(*peersConfig)) *peers {
	t.Helper()
	cfg := peersConfig{
		Listen:  "127.0.0.1:0",
		Self:    Member{ID: nodeID(raftID), Peer: "127.0.0.1:0"},
		RaftID:  raftID,
		Lineage: func() lineage { return lineage{} },
		Lookup:  func(string) string { return "" },
		Known:   func(string) (bool, string) { return false, "" },
	}
	for _, f := range change {
		f(&cfg)
	}
	p, err := listenPeers(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func withHandler(kind uint8, h rpcHandler) func(*peersConfig) {
	return func(c *peersConfig) {
		if c.Handlers == nil {
			c.Handlers = map[uint8]rpcHandler{}
		}
		c.Handlers[kind] = h
	}
}

func withCluster(id byte) func(*peersConfig) { return withLineage(id, 1) }

func withLineage(id byte, generation uint64) func(*peersConfig) {
	return func(c *peersConfig) {
		c.Lineage = func() lineage { return lineage{[16]byte{15: id}, generation} }
	}
}

// echo answers with what it was asked.
func echo(payload []byte, _ time.Duration, reply func([]byte)) { reply(payload) }

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func withLog(w *lockedBuffer) func(*peersConfig) {
	return func(c *peersConfig) { c.Logger = slog.New(slog.NewTextHandler(w, nil)) }
}

// until polls a condition for up to 5 s.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}

func TestCallIsAnsweredByTheHandlerOfItsKind(t *testing.T) {
	b := startPeers(t, "n2-00000002",
		withHandler(kindForward, echo),
		withHandler(kindStatus, func(_ []byte, _ time.Duration, reply func([]byte)) { reply([]byte{}) }))
	a := startPeers(t, "n1-00000001")

	if got, o := a.call(b.Addr(), kindForward, []byte("hello"), time.Second); o != fsm.Applied || string(got) != "hello" {
		t.Fatalf("echo: %q, %v", got, o)
	}
	if got, o := a.call(b.Addr(), kindStatus, nil, time.Second); o != fsm.Applied || got == nil || len(got) != 0 {
		t.Fatalf("an empty answer is an answer: %v, %v", got, o)
	}
	if _, o := a.call(b.Addr(), kindChange, nil, time.Second); o != fsm.Refused {
		t.Fatalf("a kind without a handler: %v, want Refused", o)
	}
}

func TestPeerAddressBeyondLoopbackNeedsInsecure(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		p, err := listenPeers(peersConfig{Listen: listen, RaftID: "n1-00000001"})
		if err == nil {
			p.Close()
			t.Errorf("listen on %s: no error", listen)
			continue
		}
		if !strings.Contains(err.Error(), "peers.insecure") || !strings.Contains(err.Error(), listen) {
			t.Errorf("listen on %s: the error names neither the key nor the address: %v", listen, err)
		}
	}

	p := startPeers(t, "n1-00000001")
	for _, addr := range []string{"192.0.2.1:7381", "[2001:db8::1]:7381"} {
		begun := time.Now()
		if _, o := p.call(addr, kindStatus, nil, 5*time.Second); o != fsm.Refused {
			t.Errorf("call to %s: %v, want Refused", addr, o)
		}
		if err := p.lastError(addr); err == nil || !strings.Contains(err.Error(), "peers.insecure") || !strings.Contains(err.Error(), addr) {
			t.Errorf("call to %s: %v", addr, err)
		}
		if _, err := p.StreamLayer().Dial("192.0.2.1:7381", time.Second); err == nil || !strings.Contains(err.Error(), "peers.insecure") {
			t.Errorf("dial for raft: %v", err)
		}
		if d := time.Since(begun); d > 2*time.Second {
			t.Errorf("refused only after %s", d)
		}
	}
}

func TestPeerPortServesNamesAndInsecureAddresses(t *testing.T) {
	b := startPeers(t, "n2-00000002", withHandler(kindForward, echo), func(c *peersConfig) { c.Listen, c.Insecure = "0.0.0.0:0", true })
	a := startPeers(t, "n1-00000001", func(c *peersConfig) { c.Listen = "localhost:0" })
	_, port, _ := net.SplitHostPort(b.Addr())
	if _, o := a.call("localhost:"+port, kindForward, []byte("x"), time.Second); o != fsm.Applied {
		t.Fatalf("by name: %v (%v)", o, a.lastError("localhost:"+port))
	}
}

func TestClosedPeersRefuseAtOnce(t *testing.T) {
	hold := make(chan struct{})
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(_ []byte, _ time.Duration, _ func([]byte)) { close(hold) }))
	a := startPeers(t, "n1-00000001")
	got := make(chan fsm.Outcome, 1)
	go func() {
		_, o := a.call(b.Addr(), kindForward, nil, time.Minute)
		got <- o
	}()
	<-hold
	a.Close()
	if o := <-got; o != fsm.Unknown {
		t.Errorf("a call that was taken when the port closed: %v, want Unknown", o)
	}
	if _, o := a.call(b.Addr(), kindForward, nil, time.Minute); o != fsm.Refused {
		t.Errorf("after Close: %v, want Refused", o)
	}
	if _, err := a.StreamLayer().Dial("127.0.0.1:1", time.Second); err == nil {
		t.Error("dial for raft after Close: no error")
	}
	if _, err := a.StreamLayer().Accept(); err == nil {
		t.Error("accept for raft after Close: no error")
	}
}

func TestRefusalsAreLoggedOncePerReasonAndMinute(t *testing.T) {
	var out lockedBuffer
	l := newRefusalLog(slog.New(slog.NewTextHandler(&out, nil)))
	for range 5 {
		l.warn("n2 cluster", "refused", "peer", "n2")
		l.warn("n2 stranger", "refused", "peer", "n2")
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, out.String())
	}
	for i := range 10 * refusalKeys {
		l.warn(strings.Repeat("x", i), "refused")
	}
	if len(l.seen) > refusalKeys {
		t.Errorf("%d strangers are remembered, at most %d should be", len(l.seen), refusalKeys)
	}
}
