package cluster

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// InstallSnapshot implements raft.Transport: it sends a snapshot to a follower.
func (t *transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if err := t.severed(id); err != nil {
		return err
	}
	if err := t.node.fitStream(id, req, data); err != nil {
		return err
	}
	defer t.node.holdLog(id, req.LastLogIndex)()
	if f := t.slow.Load(); f != nil {
		data = (*f)(data)
	}
	return t.NetworkTransport.InstallSnapshot(id, target, req, resp, data)
}

// watchInstall notes that a snapshot is being installed, and that it moves on: raft's
// main loop answers nothing meanwhile, and the watchdog must know that from a loop
// that is stuck. After the last byte has arrived the snapshot store tells of its steps
// (Options.Progress), and the log of its truncations.
func (t *transport) watchInstall(rpc raft.RPC) raft.RPC {
	outer := rpc.RespChan
	body := t.takeIn(rpc.Reader)
	inner := make(chan raft.RPCResponse, 1)
	rpc.Reader, rpc.RespChan = body, inner
	go func() {
		defer t.bodies.Delete(body)
		var resp raft.RPCResponse
		select {
		case resp = <-inner:
		case <-t.node.stopping:
			body.giveUp.CloseWithError(errClosed)
			select {
			case resp = <-inner:
			case <-t.done:
				return
			}
		}
		t.installs.Add(-1)
		if errors.Is(resp.Error, snapshot.ErrVersion) {
			t.node.fatal(newer(fmt.Errorf("snapshot of the leader: %w", resp.Error)))
		}
		<-body.left // what raft has not read is no message of its own
		outer <- resp
	}()
	return rpc
}

// moved notes a step of an install.
func (t *transport) moved() { t.progress.Store(t.node.clock.Boot()) }

// installMoved is the snapshot store's Progress. (It also tells of readers, which
// counts only while an install is under way.) A node that starts has nobody to give
// way to.
func (n *Node) installMoved() {
	if n.raft.Load() != nil { // before, there may be no transport
		n.trans.moved()
		n.pacing.step()
	}
}

// newestStep is the boot clock at the newest step of the installs that are under way;
// idle: none is.
func (n *Node) newestStep() int64 {
	if n.trans.installs.Load() == 0 {
		return idle
	}
	at := n.trans.progress.Load()
	if cut := n.disk.deleting.Load(); cut != idle {
		at = max(at, cut)
	}
	return at
}

// body is a snapshot on its way here. It is read beside raft's main loop, which waits
// for it, so that the loop can be freed from a sender that stalls.
type body struct {
	*io.PipeReader
	giveUp *io.PipeWriter // closed with an error: that is what raft reads
	waits  atomic.Int64   // boot clock since when the sender is waited for; idle: it is not
	left   chan struct{}  // closed when nobody reads from the connection any more
}

// takeIn begins to read a body.
func (t *transport) takeIn(from io.Reader) *body {
	r, w := io.Pipe()
	b := &body{PipeReader: r, giveUp: w, left: make(chan struct{})}
	b.waits.Store(idle)
	t.moved()
	t.installs.Add(1)
	t.bodies.Store(b, true)
	arriving := readerFunc(func(p []byte) (int, error) {
		b.waits.Store(t.node.clock.Boot())
		n, err := from.Read(p)
		b.waits.Store(idle)
		if n > 0 {
			t.moved()
		}
		return n, err
	})
	go func() {
		defer close(b.left)
		_, err := io.Copy(w, arriving)
		w.CloseWithError(err)
		io.Copy(io.Discard, from) // what comes next on the connection must not be taken for a request
	}()
	return b
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var errSenderStalls = errors.New("the sender of the snapshot stalls, and another node asks for the vote of this one")

// freeLoop is called when a request arrives that tells of another leader, or of a
// candidate. If the main loop waits for a snapshot of which nothing has come for a
// heartbeat timeout, its sender may have died, and the vote of this node be needed.
func (t *transport) freeLoop() {
	limit := t.node.clock.Boot() - int64(t.node.cfg.Heartbeat)
	t.bodies.Range(func(b, _ any) bool {
		if b := b.(*body); b.waits.Load() < limit {
			b.giveUp.CloseWithError(errSenderStalls)
		}
		return true
	})
}
