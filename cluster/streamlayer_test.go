package cluster

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// raftOver is raft's own transport over a peer port.
func raftOver(t *testing.T, p *peers) *raft.NetworkTransport {
	t.Helper()
	tr := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: p.StreamLayer(), MaxPool: 3, MaxRPCsInFlight: 1, Timeout: 2 * time.Second, Logger: hclog.NewNullLogger(),
	})
	t.Cleanup(func() { tr.Close() })
	until(t, "raft takes connections", p.raft.ready)
	return tr
}

func TestRaftMessagesAndSnapshotsPassThroughThePeerPort(t *testing.T) {
	a, b := startPeers(t, "n1-00000001"), startPeers(t, "n2-00000002")
	from, to := raftOver(t, a), raftOver(t, b)
	body := bytes.Repeat([]byte("state"), 300_000)
	go func() {
		for rpc := range to.Consumer() {
			switch c := rpc.Command.(type) {
			case *raft.AppendEntriesRequest:
				rpc.Respond(&raft.AppendEntriesResponse{Term: c.Term, Success: true, LastLog: uint64(len(c.Entries))}, nil)
			case *raft.InstallSnapshotRequest:
				got, err := io.ReadAll(rpc.Reader)
				rpc.Respond(&raft.InstallSnapshotResponse{Success: err == nil && bytes.Equal(got, body)}, nil)
			}
		}
	}()
	target := raft.ServerAddress(b.Addr())
	for i := range 3 {
		req := raft.AppendEntriesRequest{Term: uint64(i), Entries: []*raft.Log{{Index: 1, Data: make([]byte, 700_000)}}}
		var resp raft.AppendEntriesResponse
		if err := from.AppendEntries("n2-00000002", target, &req, &resp); err != nil || !resp.Success || resp.LastLog != 1 {
			t.Fatalf("append %d: %+v, %v", i, resp, err)
		}
	}
	var resp raft.InstallSnapshotResponse
	req := raft.InstallSnapshotRequest{Size: int64(len(body))}
	if err := from.InstallSnapshot("n2-00000002", target, &req, &resp, bytes.NewReader(body)); err != nil || !resp.Success {
		t.Fatalf("install: %+v, %v", resp, err)
	}
}

func TestClosingWithAConnectionThatRaftHasNotTakenYet(t *testing.T) {
	p := startPeers(t, "n1-00000001")
	near, far := net.Pipe()
	defer far.Close()
	if !p.track(near) {
		t.Fatal("not tracked")
	}
	p.raft.offer(newRaftConn(near, time.Second, func() { p.untrack(near) }))
	p.wg.Done() // as its goroutine does, once it has handed the connection over
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testPatience):
		t.Fatal("Close waits for itself")
	}
}

func TestRaftIsToldTheConfiguredAddress(t *testing.T) {
	p := startPeers(t, "n1-00000001", func(c *peersConfig) { c.Self.Peer = "db-1.example:7381" })
	if got := p.StreamLayer().Addr().String(); got != "db-1.example:7381" {
		t.Errorf("%s, want the name: the others resolve it", got)
	}
	p = startPeers(t, "n1-00000001")
	if got := p.StreamLayer().Addr().String(); got != p.Addr() {
		t.Errorf("%s, want the port that the kernel chose, %s", got, p.Addr())
	}
}

func TestRaftConnectionsBeyondTheBacklogAreClosedNotKept(t *testing.T) {
	p := startPeers(t, "n1-00000001")
	p.raft.running.Store(true) // raft has asked once, and takes no more
	d := startPeers(t, "n2-00000002")
	var conns []net.Conn
	for range raftBacklog + 3 {
		c, err := d.StreamLayer().Dial(raft.ServerAddress(p.Addr()), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	held := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.accepted)
	}
	until(t, "the rest is closed", func() bool { return held() == raftBacklog })
	p.StreamLayer().Close()
	until(t, "all are closed with raft", func() bool { return held() == 0 })
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a connection is still open: %v", err)
		}
	}
	if _, err := d.StreamLayer().Dial(raft.ServerAddress(p.Addr()), time.Second); err == nil {
		t.Error("raft has ended here, and a connection for it is taken")
	}
}

// tcpPair is a connected pair of TCP connections.
func tcpPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestSenderThatStallsInsideAMessageIsCutOffAndAnIdleOneIsNot(t *testing.T) {
	t.Parallel()
	const limit = 100 * time.Millisecond
	sender, accepted := tcpPair(t)
	c := newRaftConn(accepted, limit, func() { accepted.Close() })
	buf := make([]byte, 64)
	read := func() error { _, err := c.Read(buf); return err }

	// Two reads make the first message; the answer to it ends it.
	sender.Write([]byte("mess"))
	if err := read(); err != nil {
		t.Fatal(err)
	}
	sender.Write([]byte("age"))
	if err := read(); err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("answer"))

	// The next one begins when it likes.
	time.AfterFunc(4*limit, func() { sender.Write([]byte("ne")) })
	if err := read(); err != nil {
		t.Fatalf("an idle connection was cut off: %v", err)
	}
	// Once begun it must go on.
	begun := time.Now()
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a sender stalled in the middle: %v, want a timeout", err)
	}
	if d := time.Since(begun); d < limit || d > 20*limit {
		t.Errorf("cut off after %s, the limit is %s", d, limit)
	}
}

func TestRaftConnectionThatSaysNothingIsCutOff(t *testing.T) {
	t.Parallel()
	_, accepted := tcpPair(t)
	c := newRaftConn(accepted, 50*time.Millisecond, func() { accepted.Close() })
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v, want a timeout: a peer dials for raft when it has a message", err)
	}
}

func TestSlowReceiverIsNotTakenForAStalledSender(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	sender, accepted := tcpPair(t)
	c := newRaftConn(accepted, limit, func() { accepted.Close() })
	go sender.Write(make([]byte, 4096))
	buf := make([]byte, 1024)
	for range 4 {
		if _, err := io.ReadFull(c, buf); err != nil {
			t.Fatalf("the receiver took its time, the sender did not: %v", err)
		}
		time.Sleep(2 * limit) // a disk that is slow to take the bytes
	}
}
