package cluster

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"limitd/fsm"
)

// fakePeer listens and runs script on each connection, then closes it.
func fakePeer(t testing.TB, script func(n int, conn net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)
	wg.Go(func() {
		for n := 0; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				script(n, conn)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().String()
}

// welcome makes a fake peer's half of the handshake.
func welcome(conn net.Conn) {
	if _, err := readHello(conn); err == nil {
		conn.Write(appendAnswer(nil, answer{version: peerVersion, raftID: "n2-00000002"}))
	}
}

func TestCallSaysExactlyWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	request := func(conn net.Conn) rpcRequest {
		q, _ := readRequest(bufio.NewReader(conn))
		return q
	}
	for _, c := range []struct {
		name   string
		script func(n int, conn net.Conn)
		want   fsm.Outcome
	}{
		{"closes at once", func(int, net.Conn) {}, fsm.Refused},
		{"closes in the handshake", func(_ int, conn net.Conn) { readHello(conn) }, fsm.Refused},
		{"answers the handshake with garbage", func(_ int, conn net.Conn) { readHello(conn); conn.Write([]byte("-ERR unknown command\r\n")) }, fsm.Refused},
		{"refuses the handshake", func(_ int, conn net.Conn) {
			readHello(conn)
			conn.Write(appendAnswer(nil, answer{version: peerVersion, code: refusedCluster, raftID: "n2-00000002", text: "no"}))
		}, fsm.Refused},
		{"is silent in the handshake", func(_ int, conn net.Conn) { io.Copy(io.Discard, conn) }, fsm.Refused},
		{"closes in the middle of the frame", func(_ int, conn net.Conn) { welcome(conn); io.ReadFull(conn, make([]byte, 5)) }, fsm.Unknown},
		{"closes after the frame", func(_ int, conn net.Conn) { welcome(conn); request(conn) }, fsm.Unknown},
		{"never answers", func(_ int, conn net.Conn) { welcome(conn); io.Copy(io.Discard, conn) }, fsm.Unknown},
		{"answers with half a frame", func(_ int, conn net.Conn) {
			welcome(conn)
			conn.Write(appendResponse(nil, rpcResponse{id: request(conn).id, payload: []byte("yes")})[:responseHead+1])
		}, fsm.Unknown},
		{"answers with garbage", func(_ int, conn net.Conn) {
			welcome(conn)
			request(conn)
			conn.Write(bytes.Repeat([]byte{0xff}, 64))
			io.Copy(io.Discard, conn)
		}, fsm.Unknown},
		{"answers with an unknown status", func(_ int, conn net.Conn) {
			welcome(conn)
			conn.Write(appendResponse(nil, rpcResponse{id: request(conn).id, status: 3}))
			io.Copy(io.Discard, conn)
		}, fsm.Unknown},
		{"answers what was not asked", func(_ int, conn net.Conn) {
			welcome(conn)
			conn.Write(appendResponse(nil, rpcResponse{id: request(conn).id + 1}))
			io.Copy(io.Discard, conn)
		}, fsm.Unknown},
		{"lost the answer", func(_ int, conn net.Conn) {
			welcome(conn)
			conn.Write(appendResponse(nil, rpcResponse{id: request(conn).id, status: statusLost}))
		}, fsm.Unknown},
		{"refuses", func(_ int, conn net.Conn) {
			welcome(conn)
			conn.Write(appendResponse(nil, rpcResponse{id: request(conn).id, status: statusRefused}))
		}, fsm.Refused},
		{"answers", func(_ int, conn net.Conn) {
			welcome(conn)
			conn.Write(appendResponse(nil, rpcResponse{id: request(conn).id, payload: []byte("yes")}))
		}, fsm.Applied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startPeers(t, "n1-00000001")
			addr := fakePeer(t, c.script)
			const timeout = 300 * time.Millisecond
			begun := time.Now()
			reply, o := p.call(addr, kindForward, []byte("take"), timeout)
			if o != c.want || (o == fsm.Applied) != (string(reply) == "yes") {
				t.Errorf("%v, %q; want %v", o, reply, c.want)
			}
			if d := time.Since(begun); d > timeout+500*time.Millisecond {
				t.Errorf("it took %s, the timeout is %s", d, timeout)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		p := startPeers(t, "n1-00000001")
		if _, o := p.call("127.0.0.1:1", kindForward, nil, time.Second); o != fsm.Refused {
			t.Errorf("%v, want Refused", o)
		}
	})
	t.Run("no time is left", func(t *testing.T) {
		p := startPeers(t, "n1-00000001")
		if _, o := p.call("127.0.0.1:1", kindForward, nil, 0); o != fsm.Refused {
			t.Errorf("%v, want Refused", o)
		}
	})
	t.Run("too large", func(t *testing.T) {
		p := startPeers(t, "n1-00000001")
		if _, o := p.call("127.0.0.1:1", kindForward, make([]byte, maxRequest+1), time.Second); o != fsm.Refused {
			t.Errorf("%v, want Refused", o)
		}
	})
}

func TestLateAnswerIsNotAnotherCallsAnswer(t *testing.T) {
	second := make(chan struct{})
	addr := fakePeer(t, func(_ int, conn net.Conn) {
		welcome(conn)
		r := bufio.NewReader(conn)
		first, _ := readRequest(r)
		next, err := readRequest(r)
		if err != nil {
			return
		}
		conn.Write(appendResponse(nil, rpcResponse{id: first.id, payload: []byte("to the first")}))
		conn.Write(appendResponse(nil, rpcResponse{id: next.id, payload: []byte("to the second")}))
		<-second
	})
	p := startPeers(t, "n1-00000001")
	if _, o := p.call(addr, kindForward, nil, 50*time.Millisecond); o != fsm.Unknown {
		t.Fatalf("the first: %v, want Unknown", o)
	}
	reply, o := p.call(addr, kindForward, nil, 2*time.Second)
	close(second)
	if o != fsm.Applied || string(reply) != "to the second" {
		t.Errorf("the second: %q, %v", reply, o)
	}
}

func TestOversizedAnswerIsUnknownNotRefused(t *testing.T) {
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(p []byte, _ time.Duration, reply func([]byte)) {
		reply(make([]byte, int(p[0])+maxResponse))
	}))
	a := startPeers(t, "n1-00000001")
	if r, o := a.call(b.Addr(), kindForward, []byte{0}, 2*time.Second); o != fsm.Applied || len(r) != maxResponse {
		t.Errorf("the largest answer: %v, %d bytes", o, len(r))
	}
	if _, o := a.call(b.Addr(), kindForward, []byte{1}, 2*time.Second); o != fsm.Unknown {
		t.Errorf("an answer too large to send: %v, want Unknown: the handler took the call", o)
	}
}

func TestHandlerThatRepliesTwiceIsHeardOnce(t *testing.T) {
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(p []byte, _ time.Duration, reply func([]byte)) {
		reply(append([]byte("first "), p...))
		reply([]byte("again"))
	}))
	a := startPeers(t, "n1-00000001")
	for i := range 100 {
		want := fmt.Sprintf("first %d", i)
		if r, o := a.call(b.Addr(), kindForward, fmt.Appendf(nil, "%d", i), time.Second); o != fsm.Applied || string(r) != want {
			t.Fatalf("%q, %v; want %q", r, o, want)
		}
	}
}

func TestHandlerIsToldTheTimeThatIsLeft(t *testing.T) {
	told := make(chan time.Duration, 1)
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(_ []byte, left time.Duration, reply func([]byte)) {
		told <- left
		reply(nil)
	}))
	a := startPeers(t, "n1-00000001")
	a.call(b.Addr(), kindForward, nil, 700*time.Millisecond)
	if d := <-told; d > 700*time.Millisecond || d < 100*time.Millisecond {
		t.Errorf("%s of 700ms are left", d)
	}
}

func TestRequestThatWaitedTooLongIsRefusedNotHandled(t *testing.T) {
	release := make(chan struct{})
	var taken atomic.Int32
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(p []byte, _ time.Duration, reply func([]byte)) {
		if taken.Add(1) == 1 {
			<-release // a slow handler holds up what is behind it
		}
		reply(p)
	}))
	conn := rawRPC(t, b.Addr())
	out := appendRequest(nil, rpcRequest{id: 1, kind: kindForward, remaining: 10_000, payload: []byte("a")})
	out = appendRequest(out, rpcRequest{id: 2, kind: kindForward, remaining: 50, payload: []byte("b")})
	out = appendRequest(out, rpcRequest{id: 3, kind: kindForward, remaining: 10_000, payload: []byte("c")})
	conn.Write(out)
	until(t, "the first is with the handler", func() bool { return taken.Load() == 1 })
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	r := bufio.NewReader(conn)
	for id, want := range []uint8{statusAnswer, statusRefused, statusAnswer} {
		a, err := readResponse(r)
		if err != nil || a.id != uint64(id+1) || a.status != want {
			t.Errorf("request %d: %+v, %v; want status %d", id+1, a, err, want)
		}
	}
	if n := taken.Load(); n != 2 {
		t.Errorf("the handler took %d requests, want 2", n)
	}
}

func TestPeerThatUsesAnIDTwiceIsCutOff(t *testing.T) {
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func([]byte, time.Duration, func([]byte)) {})) // keeps it open
	conn := rawRPC(t, b.Addr())
	q := appendRequest(nil, rpcRequest{id: 5, kind: kindForward, remaining: 10_000})
	conn.Write(append(q, q...))
	if a, err := readResponse(bufio.NewReader(conn)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%+v, %v; want a closed connection: an answer could be the other request's", a, err)
	}
}

// rawRPC is a connection to a peer port behind the handshake.
func rawRPC(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	conn.Write(appendHello(nil, hello{version: peerVersion, purpose: purposeRPC, raftID: "n9-00000009"}))
	if a, err := readAnswer(conn); err != nil || a.code != handshakeOK {
		t.Fatalf("handshake: %+v, %v", a, err)
	}
	return conn
}

func TestRequestsOfOneConnectionReachTheHandlerInOrder(t *testing.T) {
	const n = 5000
	var mu sync.Mutex
	var got []uint32
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(p []byte, _ time.Duration, reply func([]byte)) {
		mu.Lock()
		got = append(got, binary.BigEndian.Uint32(p))
		mu.Unlock()
		go reply(p) // answers may pass each other
	}))
	l := newLink("", nil)
	for i := range uint32(n) {
		l.queue = append(l.queue, &call{kind: kindForward, deadline: time.Now().Add(time.Minute), payload: binary.BigEndian.AppendUint32(nil, i), done: make(chan struct{}, 1)})
	}
	conn := rawRPC(t, b.Addr())
	for len(l.queue) > 0 {
		buf, _ := l.gather(nil, nil)
		conn.Write(buf)
	}
	r := bufio.NewReader(conn)
	seen := make(map[uint64]bool)
	for range n {
		a, err := readResponse(r)
		if err != nil || a.status != statusAnswer || seen[a.id] || uint64(binary.BigEndian.Uint32(a.payload))+1 != a.id {
			t.Fatalf("%+v, %v", a, err)
		}
		seen[a.id] = true
	}
	for i, v := range got {
		if uint32(i) != v {
			t.Fatalf("request %d came as number %d", v, i)
		}
	}
}

func TestManyCallersShareOneConnection(t *testing.T) {
	var conns, taken atomic.Int64
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(p []byte, _ time.Duration, reply func([]byte)) {
		taken.Add(1)
		go func() { reply(p) }()
	}))
	a := startPeers(t, "n1-00000001")
	addr := b.Addr()
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 200 {
				want := fmt.Appendf(nil, "%d/%d", g, i)
				payload := bytes.Clone(want)
				got, o := a.call(addr, kindForward, payload, 5*time.Second)
				clear(payload) // it is ours again
				if o != fsm.Applied || !bytes.Equal(got, want) {
					t.Errorf("%s: %q, %v", want, got, o)
					return
				}
			}
		})
	}
	wg.Wait()
	b.mu.Lock()
	conns.Store(int64(len(b.accepted)))
	b.mu.Unlock()
	if conns.Load() != 1 || taken.Load() != 32*200 {
		t.Errorf("%d connections, %d calls; want 1 and %d", conns.Load(), taken.Load(), 32*200)
	}
}
