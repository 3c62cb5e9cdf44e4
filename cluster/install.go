package cluster

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// installRate is what the slowest disk that a node may have installs of a
// snapshot, in bytes of its stream a second. After the last byte has arrived, raft's
// main loop waits until all is written, synced, verified and loaded into the table,
// and nothing moves that could be seen from here.
const installRate = 1 << 20

// installTime is for how long nothing may move while a snapshot of size is installed.
func installTime(size int64) time.Duration {
	return time.Duration(size/installRate) * time.Second
}

// watchInstall notes that a snapshot is being installed, and its progress: raft's
// main loop answers nothing meanwhile, and the watchdog must know that from a
// loop that is stuck.
func (t *transport) watchInstall(rpc raft.RPC, size int64) raft.RPC {
	clock, outer := t.node.clock, rpc.RespChan
	t.installing.Store(size)
	t.progress.Store(clock.Boot())
	rpc.Reader = movingReader{rpc.Reader, func() { t.progress.Store(clock.Boot()) }}
	inner := make(chan raft.RPCResponse, 1)
	rpc.RespChan = inner
	go func() {
		select {
		case resp := <-inner:
			t.progress.Store(idle)
			t.installing.Store(0)
			if errors.Is(resp.Error, snapshot.ErrVersion) {
				t.node.fatal(newer(fmt.Errorf("snapshot of the leader: %w", resp.Error)))
			}
			outer <- resp
		case <-t.done:
		}
	}()
	return rpc
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
