package cluster

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// watchInstall notes that a snapshot is being installed, and that it moves on: raft's
// main loop answers nothing meanwhile, and the watchdog must know that from a loop
// that is stuck. After the last byte has arrived the snapshot store tells of its steps
// (Options.Progress), and the log of its truncations.
func (t *transport) watchInstall(rpc raft.RPC) raft.RPC {
	outer := rpc.RespChan
	t.moved()
	t.installs.Add(1)
	rpc.Reader = movingReader{rpc.Reader, t.moved}
	inner := make(chan raft.RPCResponse, 1)
	rpc.RespChan = inner
	go func() {
		select {
		case resp := <-inner:
			t.installs.Add(-1)
			if errors.Is(resp.Error, snapshot.ErrVersion) {
				t.node.fatal(newer(fmt.Errorf("snapshot of the leader: %w", resp.Error)))
			}
			outer <- resp
		case <-t.done:
		}
	}()
	return rpc
}

// moved notes a step of an install.
func (t *transport) moved() { t.progress.Store(t.node.clock.Boot()) }

// installMoved is the snapshot store's Progress. (It also tells of readers, which
// counts only while an install is under way.)
func (n *Node) installMoved() {
	if n.raft.Load() != nil { // before, there may be no transport
		n.trans.moved()
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

// movingReader calls moved at each read that brought something.
type movingReader struct {
	io.Reader
	moved func()
}

func (r movingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.moved()
	}
	return n, err
}
