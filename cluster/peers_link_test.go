package cluster

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"limitd/fsm"
)

// cutter forwards TCP to target and cuts each connection after a random number
// of bytes in either direction.
func cutter(t testing.TB, target func() string, upTo int64) (addr string) {
	return fakePeer(t, func(_ int, in net.Conn) {
		out, err := net.Dial("tcp", target())
		if err != nil {
			return
		}
		defer out.Close()
		var wg sync.WaitGroup
		half := func(dst, src net.Conn) {
			io.CopyN(dst, src, rand.Int64N(upTo))
			in.Close()
			out.Close()
		}
		wg.Go(func() { half(out, in) })
		half(in, out)
		wg.Wait()
	})
}

func TestOutcomesAreTrueWhenConnectionsBreakAnywhere(t *testing.T) {
	t.Parallel()
	type seen struct {
		taken   atomic.Int32
		outcome atomic.Int32
	}
	const callers, each = 16, 400
	all := make([]seen, callers*each)
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(p []byte, _ time.Duration, reply func([]byte)) {
		i := binary.BigEndian.Uint32(p)
		switch {
		case i%7 == 0:
			reply(nil) // it does not take these
			return
		case i%11 == 0:
			all[i].taken.Add(1) // and these it never answers
			return
		}
		all[i].taken.Add(1)
		time.AfterFunc(rand.N(3*time.Millisecond), func() { reply(p[:4]) })
	}))
	a := startPeers(t, "n1-00000001")
	addr := cutter(t, b.Addr, 100_000)
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for i := range each {
				n := uint32(g*each + i)
				payload := make([]byte, 4+rand.N(2000))
				binary.BigEndian.PutUint32(payload, n)
				reply, o := a.call(addr, kindForward, payload, time.Millisecond+rand.N(30*time.Millisecond))
				clear(payload)
				if o == fsm.Applied && (len(reply) != 4 || binary.BigEndian.Uint32(reply) != n) {
					t.Errorf("call %d got the answer %x", n, reply)
				}
				all[n].outcome.Store(int32(o))
			}
		})
	}
	wg.Wait()
	a.Close()
	b.Close() // nothing reaches the handler any more
	var count [4]int
	for i := range all {
		o, taken := fsm.Outcome(all[i].outcome.Load()), all[i].taken.Load()
		count[o]++
		if taken > 1 {
			t.Errorf("call %d was taken %d times", i, taken)
		}
		if o == fsm.Refused && taken != 0 {
			t.Errorf("call %d is said to be refused, and a handler took it", i)
		}
		if o == fsm.Applied && taken != 1 {
			t.Errorf("call %d was answered, and no handler took it", i)
		}
	}
	for _, o := range []fsm.Outcome{fsm.Applied, fsm.Refused, fsm.Unknown} {
		if count[o] < 50 {
			t.Errorf("outcome %v came %d times only: this test tries nothing", o, count[o])
		}
	}
}

func TestFramesThatNeverLeftABrokenConnectionAreRefused(t *testing.T) {
	l := newLink("", nil)
	var cs []*call
	for range 3 {
		c := &call{deadline: time.Now().Add(time.Minute), payload: make([]byte, 100), done: make(chan struct{}, 1)}
		cs = append(cs, c)
		l.queue = append(l.queue, c)
		l.bytes += 100
	}
	buf, batch := l.gather(nil, nil)
	frame := len(buf) / 3
	l.write(&shortConn{takes: frame + 1}, buf, batch)
	l.disconnect()
	for i, want := range []fsm.Outcome{fsm.Unknown, fsm.Unknown, fsm.Refused} {
		if cs[i].stage != callEnded || cs[i].outcome != want {
			t.Errorf("frame %d of 3, broken at the first byte of the second: %v, want %v", i+1, cs[i].outcome, want)
		}
	}
	if l.bytes != 0 || len(l.sent) != 0 || len(l.queue) != 0 {
		t.Errorf("left over: %d bytes, %d sent, %d queued", l.bytes, len(l.sent), len(l.queue))
	}
}

// shortConn takes some bytes of a write, then fails.
type shortConn struct {
	net.Conn
	takes int
}

func (s *shortConn) Write(b []byte) (int, error)      { return min(len(b), s.takes), io.ErrClosedPipe }
func (s *shortConn) SetWriteDeadline(time.Time) error { return nil }

func TestPeerThatNeverReadsCostsBoundedMemoryAndNoTime(t *testing.T) {
	t.Parallel()
	addr := fakePeer(t, func(_ int, conn net.Conn) {
		welcome(conn)
		conn.(*net.TCPConn).SetReadBuffer(4096)
		time.Sleep(2 * time.Second) // it reads nothing
	})
	p := startPeers(t, "n1-00000001")
	const timeout = 500 * time.Millisecond
	var count [4]atomic.Int32
	var worst atomic.Int64
	var wg sync.WaitGroup
	payload := make([]byte, 1<<20)
	for range 64 {
		wg.Go(func() {
			begun := time.Now()
			_, o := p.call(addr, kindForward, payload, timeout)
			if o == fsm.Unknown && time.Since(begun) < timeout {
				t.Errorf("unknown before the timeout")
			}
			count[o].Add(1)
			l := p.link(addr)
			l.mu.Lock()
			worst.Store(max(worst.Load(), int64(l.bytes)))
			l.mu.Unlock()
			if d := time.Since(begun); d > timeout+400*time.Millisecond {
				t.Errorf("a caller waited %s", d)
			}
		})
	}
	wg.Wait()
	if worst.Load() > maxQueuedBytes {
		t.Errorf("%d bytes were queued, at most %d are allowed", worst.Load(), maxQueuedBytes)
	}
	if r, u := count[fsm.Refused].Load(), count[fsm.Unknown].Load(); r < 40 || u < 1 || r+u != 64 {
		t.Errorf("%d refused, %d unknown; want most refused and the written ones unknown", r, u)
	}
	l := p.link(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes != 0 || len(l.sent) != 0 {
		t.Errorf("after all have returned %d bytes are queued and %d calls are open", l.bytes, len(l.sent))
	}
}

func TestSilentPeerIsCutOffSoThatCallsAreRefusedNotLost(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	addr := fakePeer(t, func(n int, conn net.Conn) {
		if n == 0 {
			welcome(conn)
		}
		_, err := io.Copy(io.Discard, conn)
		if n == 0 {
			ended <- err
		}
	})
	p := startPeers(t, "n1-00000001")
	begun := time.Now()
	until(t, "calls are refused", func() bool {
		_, o := p.call(addr, kindForward, nil, 100*time.Millisecond)
		return o == fsm.Refused
	})
	if d := time.Since(begun); d < quietLimit {
		t.Errorf("cut off after %s, before %s of silence", d, quietLimit)
	}
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) { // an orderly end would come behind what is still to be delivered
		t.Errorf("the connection that was given up ended with %v, want a reset", err)
	}
}

func TestCallersThatDoNotReadAnswersAreNotReadFrom(t *testing.T) {
	t.Parallel()
	var taken atomic.Int64
	b := startPeers(t, "n2-00000002", withHandler(kindForward, func(_ []byte, _ time.Duration, reply func([]byte)) {
		taken.Add(1)
		reply(make([]byte, 256<<10))
	}))
	conn := rawRPC(t, b.Addr())
	conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for id := uint64(1); ; id++ {
		if _, err := conn.Write(appendRequest(nil, rpcRequest{id: id, kind: kindForward, remaining: 60_000, payload: make([]byte, 64<<10)})); err != nil {
			break
		}
		if id > 1000 {
			t.Fatal("1000 requests were read while no answer was")
		}
	}
	if n := taken.Load(); n < 10 || n*256<<10 > 64<<20 {
		t.Errorf("%d answers of 256 KiB were made for a caller that reads none", n)
	}
}

func TestLinkComesBackWhenThePeerDoes(t *testing.T) {
	b := startPeers(t, "n2-00000002", withHandler(kindForward, echo))
	addr := b.Addr()
	a := startPeers(t, "n1-00000001")
	if _, o := a.call(addr, kindForward, nil, time.Second); o != fsm.Applied {
		t.Fatal(o)
	}
	b.Close()
	until(t, "the peer is missed", func() bool { _, o := a.call(addr, kindForward, nil, time.Second); return o == fsm.Refused })
	if a.lastError(addr) == nil {
		t.Error("no reason is told")
	}
	startPeers(t, "n2-00000002", withHandler(kindForward, echo), func(c *peersConfig) { c.Listen = addr })
	until(t, "the peer is back", func() bool { _, o := a.call(addr, kindForward, nil, time.Second); return o == fsm.Applied })
	if err := a.lastError(addr); err != nil {
		t.Errorf("it answers, and the error is still %v", err)
	}
}

func TestDeadPeerIsNotDialedInABusyLoop(t *testing.T) {
	var dials atomic.Int32
	addr := fakePeer(t, func(int, net.Conn) { dials.Add(1) })
	p := startPeers(t, "n1-00000001")
	end := time.Now().Add(time.Second)
	for time.Now().Before(end) {
		p.call(addr, kindForward, nil, time.Second)
	}
	if n := dials.Load(); n < 3 || n > 20 {
		t.Errorf("dialed %d times in a second", n)
	}
}

// BenchmarkCall is one forwarded chunk of 64 commands: 3 KB there, 1 KB back.
func BenchmarkCall(b *testing.B) {
	answer := make([]byte, 1024)
	server := startPeers(b, "n2-00000002", withHandler(kindForward, func(_ []byte, _ time.Duration, reply func([]byte)) { reply(answer) }))
	client := startPeers(b, "n1-00000001")
	addr := server.Addr()
	payload := make([]byte, 3<<10)
	b.ReportAllocs()
	b.SetParallelism(100)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, o := client.call(addr, kindForward, payload, 10*time.Second); o != fsm.Applied {
				b.Error(o)
				return
			}
		}
	})
}

func TestCallWhoseTimeRanOutInTheQueueIsNotSent(t *testing.T) {
	l := newLink("", nil)
	c := &call{deadline: time.Now().Add(-time.Millisecond), payload: make([]byte, 10), done: make(chan struct{}, 1)}
	l.queue, l.bytes = append(l.queue, c), 10
	buf, _ := l.gather(nil, nil)
	if len(buf) != 0 || c.stage != callEnded || c.outcome != fsm.Refused || l.bytes != 0 || len(l.sent) != 0 {
		t.Errorf("%d bytes are sent, stage %d, outcome %v, %d bytes left in the queue", len(buf), c.stage, c.outcome, l.bytes)
	}
}

// Each mistaken address of an operator, and each that a member has left, would cost a
// goroutine for ever.
func TestLinkThatNobodyAsksForIsDropped(t *testing.T) {
	old := startPeers(t, "n2-00000002", withHandler(kindForward, echo))
	used := startPeers(t, "n3-00000003", withHandler(kindForward, echo))
	fresh := startPeers(t, "n4-00000004", withHandler(kindForward, echo))
	p := startPeers(t, "n1-00000001")
	call := func(to *peers) {
		t.Helper()
		if _, o := p.call(to.Addr(), kindForward, nil, time.Second); o != fsm.Applied {
			t.Errorf("a call to %s: %v", to.Addr(), o)
		}
	}
	call(old)
	call(used)
	idle, busy := p.link(old.Addr()), p.link(used.Addr())
	p.mu.Lock()
	idle.used = idle.used.Add(-linkIdle - time.Second)
	p.mu.Unlock()
	call(fresh)
	until(t, "the idle link is gone", func() bool {
		idle.mu.Lock()
		defer idle.mu.Unlock()
		return idle.closed && idle.conn == nil
	})
	if p.link(used.Addr()) != busy {
		t.Error("one that is in use was dropped")
	}
	call(old) // over another one
}
