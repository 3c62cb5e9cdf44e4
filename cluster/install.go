package cluster

import (
	"io"

	"github.com/hashicorp/raft"
)

// watchInstall notes the progress of a snapshot that is being installed: raft's
// main loop answers nothing meanwhile, and the watchdog must know that from a
// loop that is stuck.
func (t *transport) watchInstall(rpc raft.RPC) raft.RPC {
	clock, outer := t.node.clock, rpc.RespChan
	t.progress.Store(clock.Boot())
	rpc.Reader = movingReader{rpc.Reader, func() { t.progress.Store(clock.Boot()) }}
	inner := make(chan raft.RPCResponse, 1)
	rpc.RespChan = inner
	go func() {
		select {
		case resp := <-inner:
			t.progress.Store(idle)
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
