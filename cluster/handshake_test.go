package cluster

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func knows(raftID, conflict string) func(*peersConfig) {
	return func(c *peersConfig) {
		c.Known = func(id string) (bool, string) {
			if id == raftID {
				return false, conflict
			}
			return false, ""
		}
	}
}

func both(f, g func(*peersConfig)) func(*peersConfig) {
	return func(c *peersConfig) { f(c); g(c) }
}

func expects(raftID string) func(*peersConfig) {
	return func(c *peersConfig) { c.Lookup = func(string) string { return raftID } }
}

func TestHandshakeRefusesWhoDoesNotBelongHere(t *testing.T) {
	const a, b = "n1-00000001", "n2-00000002"
	none := func(*peersConfig) {}
	for _, c := range []struct {
		name             string
		dialer, listener func(*peersConfig)
		dialerID         string
		code             refusalCode
		local            bool // the dialer refused
		text             []string
	}{
		{name: "two fresh nodes", dialer: none, listener: none},
		{name: "a fresh node dials a member", dialer: none, listener: withCluster(1)},
		{name: "a member dials a fresh node", dialer: withCluster(1), listener: none},
		{name: "the same cluster", dialer: withCluster(1), listener: withCluster(1)},
		{name: "the expected raft id", dialer: expects(b), listener: none},

		{name: "another cluster", dialer: withCluster(1), listener: withCluster(2), code: refusedCluster, text: []string{a, b, "01", "02", "peer addresses"}},
		{name: "the dialer was left behind by a recovery", dialer: withLineage(1, 1), listener: withLineage(1, 2), code: refusedGeneration, text: []string{a + " is of generation 1", b + " of generation 2", "Stop n1", "--join"}},
		{name: "the listener was left behind by a recovery", dialer: withLineage(1, 3), listener: withLineage(1, 2), code: refusedGeneration, text: []string{b + " is of generation 2", a + " of generation 3", "Stop n2", "--join"}},
		{name: "the listener got its raft id in a recovery", dialer: both(withLineage(1, 1), expects("n2-0000000f")), listener: withLineage(1, 2), code: refusedGeneration, text: []string{"Stop n1"}},
		{name: "a fresh node dials a recovered cluster", dialer: none, listener: withLineage(1, 2)},
		{name: "the listener's disk is new", dialer: expects("n2-0000000f"), listener: none, code: refusedReceiver, text: []string{b, "n2-0000000f", "remove member", "--join"}},
		{name: "another node listens", dialer: expects("n3-00000003"), listener: none, code: refusedReceiver, text: []string{b, "n3-00000003", "correct the peer addresses"}},
		{name: "the dialer's disk is new", dialer: none, listener: knows(a, "n1-0000000f"), code: refusedStranger, text: []string{a, "n1-0000000f", "remove member", "--join"}},
		{name: "the dialer knows better", dialer: knows(b, "n2-0000000f"), listener: none, code: refusedStranger, local: true, text: []string{b, "n2-0000000f", "remove member"}},
		{name: "a copied data directory", dialer: none, listener: none, dialerID: b, code: refusedSelf, text: []string{b, "copied"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.dialerID == "" {
				c.dialerID = a
			}
			var dialerLog, listenerLog lockedBuffer
			l := startPeers(t, b, c.listener, withLog(&listenerLog))
			d := startPeers(t, c.dialerID, c.dialer, withLog(&dialerLog))
			for range 3 {
				conn, err := d.dial(t.Context(), l.Addr(), purposeRPC, time.Second)
				if c.code == handshakeOK {
					if err != nil {
						t.Fatal(err)
					}
					conn.Close()
					continue
				}
				var ref *refusal
				if !errors.As(err, &ref) {
					t.Fatalf("not a refusal: %v", err)
				}
				if ref.code != c.code || ref.local != c.local {
					t.Errorf("refused with code %d, local %v: %v; want %d, %v", ref.code, ref.local, err, c.code, c.local)
				}
				for _, want := range c.text {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
			}
			wantLines, wantListener := 0, 0
			if c.code != handshakeOK {
				wantLines = 1
				if !c.local {
					wantListener = 1
				}
			}
			if n := strings.Count(dialerLog.String(), "\n"); n != wantLines {
				t.Errorf("the dialer logged %d lines, want %d:\n%s", n, wantLines, dialerLog.String())
			}
			if n := strings.Count(listenerLog.String(), "\n"); n != wantListener {
				t.Errorf("the listener logged %d lines, want %d:\n%s", n, wantListener, listenerLog.String())
			}
		})
	}
}

// exchange sends raw bytes to a peer port and returns its answer.
func exchange(t *testing.T, addr string, b []byte) (answer, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	conn.Write(b)
	return readAnswer(conn)
}

func TestHandshakeRefusesOtherVersionsPurposesAndNotesRaftIsNotThere(t *testing.T) {
	p := startPeers(t, "n1-00000001")
	ask := hello{version: peerVersion, purpose: purposeRPC, raftID: "n2-00000002"}
	for _, c := range []struct {
		name   string
		change func(*hello)
		want   refusalCode
	}{
		{"fine", func(*hello) {}, handshakeOK},
		{"newer version", func(h *hello) { h.version = peerVersion + 1 }, refusedVersion},
		{"unknown purpose", func(h *hello) { h.purpose = 9 }, refusedPurpose},
		{"raft does not run", func(h *hello) { h.purpose = purposeRaft }, refusedNotReady},
	} {
		h := ask
		c.change(&h)
		a, err := exchange(t, p.Addr(), appendHello(nil, h))
		if err != nil || a.code != c.want || (a.code != handshakeOK) != (a.text != "") {
			t.Errorf("%s: code %d, text %q, %v; want code %d", c.name, a.code, a.text, err, c.want)
		}
	}
}

func TestListenerClosesWhatIsNoHandshake(t *testing.T) {
	p := startPeers(t, "n1-00000001")
	good := appendHello(nil, hello{version: peerVersion, purpose: purposeRPC, raftID: "n2-00000002"})
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	for name, b := range map[string][]byte{
		"a Redis client":     []byte("*1\r\n$4\r\nPING\r\n"),
		"too long":           edit(func(b []byte) []byte { b[10], b[11] = 0xff, 0xff; return b }),
		"too short":          edit(func(b []byte) []byte { b[10], b[11] = 0, 3; return b[:15] }),
		"string beyond":      edit(func(b []byte) []byte { b[37] = 200; return b }),
		"bytes left over":    edit(func(b []byte) []byte { b[11]++; return append(b, 0) }),
		"no raft id":         appendHello(nil, hello{version: peerVersion, purpose: purposeRPC}),
		"raft id with lines": appendHello(nil, hello{version: peerVersion, purpose: purposeRPC, raftID: "n2\nx-00000002"}),
		"long raft id":       appendHello(nil, hello{version: peerVersion, purpose: purposeRPC, raftID: strings.Repeat("n", maxRaftID+1)}),
	} {
		a, err := exchange(t, p.Addr(), b)
		var ne net.Error
		if err == nil || errors.As(err, &ne) && ne.Timeout() {
			t.Errorf("%s: answer %+v, %v; want a closed connection", name, a, err)
		}
	}
}

func TestSilentStrangersAreCutOffAndDoNotLockOutPeers(t *testing.T) {
	t.Parallel()
	p := startPeers(t, "n1-00000001", withHandler(kindForward, echo))
	begun := time.Now()
	silent := make([]net.Conn, maxHandshakes)
	for i := range silent {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent[i] = c
	}
	until(t, "all slots are taken", func() bool { return len(p.handshakes) == maxHandshakes })
	if _, err := exchange(t, p.Addr(), nil); err == nil || time.Since(begun) > handshakeTimeout {
		t.Errorf("one more is not closed at once: %v", err)
	}
	for _, c := range silent {
		c.SetReadDeadline(begun.Add(handshakeTimeout + 3*time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a silent stranger is not cut off: %v", err)
		}
	}
	d := startPeers(t, "n2-00000002")
	until(t, "a peer gets in", func() bool {
		_, o := d.call(p.Addr(), kindForward, []byte("x"), time.Second)
		return o == 0
	})
	until(t, "only the connection of the peer is held", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.accepted) == 1
	})
}

func TestHandshakeIsReadToItsLastByteAndNoFurther(t *testing.T) {
	h := hello{version: peerVersion, purpose: purposeRPC, of: lineage{[16]byte{1, 2, 3}, 9}, raftID: "n2-00000002", expect: "n1-00000001"}
	r := bytes.NewReader(append(appendHello(nil, h), "frames"...))
	got, err := readHello(r)
	if err != nil || got != h {
		t.Fatalf("read %+v, %v; want %+v", got, err, h)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "frames" {
		t.Errorf("%q is left, want what follows the handshake", rest)
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add(appendHello(nil, hello{version: peerVersion, purpose: purposeRaft, raftID: "n1-00000001", expect: "n2-00000002"}))
	f.Add(appendAnswer(nil, answer{version: peerVersion, code: refusedCluster, raftID: "n1-00000001", text: "no"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := readHello(bytes.NewReader(b)); err == nil && h.version == peerVersion {
			if out := appendHello(nil, h); !bytes.HasPrefix(b, out) {
				t.Errorf("hello %x is written as %x", b, out)
			}
		}
		if a, err := readAnswer(bytes.NewReader(b)); err == nil && a.version == peerVersion {
			if out := appendAnswer(nil, a); !bytes.HasPrefix(b, out) {
				t.Errorf("answer %x is written as %x", b, out)
			}
		}
	})
}

// goldenPeer reads testdata/peer_v2.golden: lines of a name and hex bytes.
func goldenPeer(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/peer_v2.golden")
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden[name] = b
	}
	return golden
}

func TestPeerProtocolVersion2IsReadAndWrittenAsItWas(t *testing.T) {
	golden := goldenPeer(t)
	of := lineage{[16]byte{0x0c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 2}
	h := hello{version: 2, purpose: purposeRaft, of: of, raftID: "n1-3f9a0c11", expect: "n2-77aa0001"}
	a := answer{version: 2, code: refusedStranger, of: of, raftID: "n2-77aa0001", text: "no"}
	q := rpcRequest{id: 7, kind: kindForward, remaining: 950, payload: []byte("take")}
	r := rpcResponse{id: 7, status: statusAnswer, payload: []byte("given")}
	for name, b := range map[string][]byte{
		"hello":    appendHello(nil, h),
		"answer":   appendAnswer(nil, a),
		"request":  appendRequest(nil, q),
		"response": appendResponse(nil, r),
	} {
		if !bytes.Equal(b, golden[name]) {
			t.Errorf("%s is written as\n%x, was\n%x", name, b, golden[name])
		}
	}
	if got, err := readHello(bytes.NewReader(golden["hello"])); err != nil || got != h {
		t.Errorf("hello: %+v, %v", got, err)
	}
	if got, err := readAnswer(bytes.NewReader(golden["answer"])); err != nil || got != a {
		t.Errorf("answer: %+v, %v", got, err)
	}
	if got, err := readRequest(framed(golden["request"])); err != nil || got.id != q.id || got.kind != q.kind || got.remaining != q.remaining || string(got.payload) != "take" {
		t.Errorf("request: %+v, %v", got, err)
	}
	if got, err := readResponse(framed(golden["response"])); err != nil || got.id != r.id || got.status != r.status || string(got.payload) != "given" {
		t.Errorf("response: %+v, %v", got, err)
	}
}

func TestDialerDoesNotRelyOnTheListenersJudgement(t *testing.T) {
	const self, expected = "n1-00000001", "n2-00000002"
	good := answer{version: peerVersion, of: lineage{[16]byte{15: 1}, 1}, raftID: expected}
	for _, c := range []struct {
		name   string
		change func(*answer)
		want   refusalCode
	}{
		{"as it should be", func(*answer) {}, handshakeOK},
		{"another version", func(a *answer) { a.version++ }, refusedVersion},
		{"another cluster", func(a *answer) { a.of.cluster[15] = 2 }, refusedCluster},
		{"another generation", func(a *answer) { a.of.generation = 2 }, refusedGeneration},
		{"a new disk", func(a *answer) { a.raftID = "n2-0000000f" }, refusedReceiver},
		{"another node", func(a *answer) { a.raftID = "n3-00000003" }, refusedReceiver},
	} {
		a := good
		c.change(&a)
		addr := fakePeer(t, func(_ int, conn net.Conn) {
			readHello(conn)
			conn.Write(appendAnswer(nil, a))
			io.Copy(io.Discard, conn)
		})
		d := startPeers(t, self, withCluster(1), expects(expected))
		conn, err := d.dial(t.Context(), addr, purposeRaft, time.Second)
		var ref *refusal
		switch {
		case c.want == handshakeOK && err == nil:
			conn.Close()
		case !errors.As(err, &ref) || ref.code != c.want || !ref.local:
			t.Errorf("%s: %v; want refusal %d by the dialer", c.name, err, c.want)
		}
	}
	addr := fakePeer(t, func(_ int, conn net.Conn) {
		readHello(conn)
		conn.Write(appendAnswer(nil, answer{version: peerVersion, raftID: self}))
	})
	var ref *refusal
	if _, err := startPeers(t, self).dial(t.Context(), addr, purposeRaft, time.Second); !errors.As(err, &ref) || ref.code != refusedSelf {
		t.Errorf("itself: %v", err)
	}
}
