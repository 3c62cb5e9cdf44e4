package resp

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"limitd/limiter"
)

// CLIENT KILL ends the connections that it names, and the one that asks after its reply.
func TestClientKill(t *testing.T) {
	s, addr := listen(t, Config{}, newFakeLimiter())
	ask := func(c net.Conn, want string, args ...string) {
		t.Helper()
		c.Write(commandBytes(args...))
		expect(t, c, want)
	}
	me := dial(t, addr)
	ask(me, "+PONG\r\n", "PING")
	victim := func() (net.Conn, string) {
		c := dial(t, addr)
		ask(c, "+PONG\r\n", "PING")
		list := s.snapshot()
		return c, fmt.Sprint(list[len(list)-1].id)
	}

	a, _ := victim()
	ask(me, "+OK\r\n", "CLIENT", "KILL", a.LocalAddr().String())
	expectClosed(t, a, "")
	b, id := victim()
	ask(me, ":0\r\n", "CLIENT", "KILL", "ID", id, "TYPE", "pubsub")
	ask(me, ":0\r\n", "CLIENT", "KILL", "ID", id, "MAXAGE", "1000")
	ask(me, ":0\r\n", "CLIENT", "KILL", "ID", id, "ADDR", "127.0.0.1:1")
	ask(me, ":1\r\n", "CLIENT", "KILL", "ID", id, "LADDR", addr, "USER", "default", "TYPE", "normal")
	expectClosed(t, b, "")
	c, id := victim()
	ask(c, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "SUBSCRIBE", "a")
	me.Write(commandBytes("CLIENT", "LIST", "ID", id))
	line := make([]byte, 300)
	if n, err := me.Read(line); err != nil || !bytes.Contains(line[:n], []byte(" flags=P db=0 sub=1 psub=0 ")) {
		t.Errorf("%q, %v", line[:n], err)
	}
	ask(me, ":1\r\n", "CLIENT", "KILL", "TYPE", "pubsub")
	expectClosed(t, c, "")

	// Its own connection counts only if it says so.
	ask(me, ":0\r\n", "CLIENT", "KILL", "TYPE", "normal")
	d, _ := victim()
	me.Write(append(commandBytes("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"), commandBytes("PING")...))
	expectClosed(t, me, ":2\r\n")
	expectClosed(t, d, "")
	eventually(t, "all connections are gone", func() bool { return s.connected() == 0 })
}

// What a connection subscribes to is bounded in number and in bytes, and refused as a whole.
func TestSubscriptionsAreBounded(t *testing.T) {
	s := newSession(t, Config{})
	var names []string
	for i := range maxChannels {
		names = append(names, fmt.Sprint(i))
	}
	const refused = "-ERR too many subscriptions: a connection may have 128, whose names have 4096 bytes together\r\n"
	s.do(append([]string{"SUBSCRIBE"}, names...)...)
	for _, verb := range []string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"} {
		if got := s.do(verb, "new"); got != refused {
			t.Errorf("%s of one too many: %q", verb, got)
		}
	}
	if got := s.do("SUBSCRIBE", "0", "1"); !strings.HasSuffix(got, ":128\r\n") {
		t.Errorf("known names: %q", got)
	}
	s.do("UNSUBSCRIBE")
	if got := s.do("SUBSCRIBE", "a", "b", strings.Repeat("c", 4095)); got != refused || s.subs.all() != 0 || s.subs.bytes != 0 {
		t.Errorf("too many bytes: %q, %d names of %d bytes", got, s.subs.all(), s.subs.bytes)
	}
	if got := s.do("SUBSCRIBE", "a", strings.Repeat("c", 4095)); !strings.HasSuffix(got, ":2\r\n") {
		t.Errorf("as many bytes as may be: %q", got)
	}
	many := append([]string{"SUBSCRIBE"}, strings.Split(strings.Repeat("a ", 1000)+"a", " ")...)
	if got := s.do(many...); strings.Count(got, "subscribe") != 1001 {
		t.Errorf("one name 1001 times: %d confirmations", strings.Count(got, "subscribe"))
	}
}

func TestTrackingPrefixesAreBounded(t *testing.T) {
	s := newSession(t, Config{})
	for i := range maxPrefixes {
		if got := s.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", fmt.Sprintf("p%02d", i)); got != "+OK\r\n" {
			t.Fatalf("prefix %d: %q", i, got)
		}
	}
	const refused = "-ERR too many prefixes: a connection may have 16 of 1024 bytes together\r\n"
	if got := s.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x"); got != refused || len(s.track.prefixes) != maxPrefixes {
		t.Errorf("%q, %d prefixes", got, len(s.track.prefixes))
	}
	s.do("CLIENT", "TRACKING", "OFF")
	if got := s.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", strings.Repeat("x", 1025)); got != refused || s.track.on {
		t.Errorf("%q", got)
	}
}

// Each connection that speaks HTTP is cut without a reply, and the log hears of the first.
func TestHTTPIsLoggedSeldom(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	_, addr := listen(t, Config{Logger: slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), nil))}, newFakeLimiter())
	for range 5 {
		c := dial(t, addr)
		c.Write([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
		expectClosed(t, c, "")
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "HTTP on the RESP port"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// The time of a chunk is shared by its commands, each of which was answered after all of it.
func TestCommandstats(t *testing.T) {
	s := newSession(t, Config{})
	var c calls
	throttle, ping := s.srv.table.byName["cl.throttle"], s.srv.table.byName["ping"]
	c.add(throttle, 2)
	c.add(ping, 1)
	c.add(throttle, 1)
	c.count(8_000_000) // ns
	c.add(ping, 1)
	c.count(900)
	s.limiter.status["bad"] = limiter.TryAgain
	began := time.Now()
	s.do("CL.THROTTLE", "bad", "1", "1", "1")
	s.do("CL.THROTTLE", "a")
	s.do("CL.THROTTLE", "a", "x", "1", "1")
	got := s.do("INFO", "commandstats", "errorstats")
	for _, want := range []string{
		"\r\ncmdstat_cl.throttle:calls=5,usec=",
		",rejected_calls=1,failed_calls=2\r\n",
		"\r\ncmdstat_ping:calls=2,usec=2000,usec_per_call=1000.00,rejected_calls=0,failed_calls=0\r\n",
		"\r\nerrorstat_ERR:count=2\r\nerrorstat_TRYAGAIN:count=1\r\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("INFO lacks %q:\n%s", want, got)
		}
	}
	var usec int64
	_, text, _ := strings.Cut(got, "cmdstat_cl.throttle:calls=5,usec=")
	if _, err := fmt.Sscanf(text, "%d,", &usec); err != nil || usec < 6000 || usec > 6000+time.Since(began).Microseconds() {
		t.Errorf("%d µs (%v), want 6000 and what this session took", usec, err)
	}
	if got := s.do("INFO", "latencystats"); !strings.Contains(got, "\r\nlatency_percentiles_usec_ping:p50=1.000,p99=8192.000,p99.9=8192.000\r\n") {
		t.Errorf("%s", got)
	}
	if got := s.do("LATENCY", "HISTOGRAM", "ping"); got != "*2\r\n$4\r\nping\r\n*4\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n*4\r\n:1\r\n:1\r\n:8192\r\n:2\r\n" {
		t.Errorf("%q", got)
	}
	// A container stands for its subcommands.
	if got := s.do("LATENCY", "HISTOGRAM", "latency"); !strings.HasPrefix(got, "*2\r\n$17\r\nlatency|histogram\r\n*4\r\n$5\r\ncalls\r\n:1\r\n") {
		t.Errorf("%q", got)
	}
}
