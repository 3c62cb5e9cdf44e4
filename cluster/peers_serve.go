package cluster

import (
	"bufio"
	"net"
	"sync"
	"time"
)

const (
	frameBuffer  = 64 << 10 // of a connection's reader
	writeTimeout = 10 * time.Second

	// What a peer may have open on one connection. Above any of these nothing more
	// is read from it; that reaches its callers as a full queue.
	maxOpenRequests = 8192
	maxOpenBytes    = 32 << 20
	maxQueuedOut    = 4 << 20
	// Answers that a peer does not take: above this it is cut off.
	maxUnread = 64 << 20
)

// rpcConn answers the calls of one peer.
type rpcConn struct {
	conn     net.Conn
	handlers map[uint8]rpcHandler

	mu     sync.Mutex
	wake   sync.Cond      // the writer waits for answers
	room   sync.Cond      // the reader waits for room
	open   map[uint64]int // payload bytes of requests that a handler has
	bytes  int            // their sum
	out    []byte         // answers, encoded
	closed bool
}

// serveRPC reads requests from conn and answers them until it ends.
func serveRPC(conn net.Conn, handlers map[uint8]rpcHandler) {
	c := &rpcConn{conn: conn, handlers: handlers, open: make(map[uint64]int)}
	c.wake.L, c.room.L = &c.mu, &c.mu
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.write()
	}()
	c.read()
	c.close()
	<-done
}

// stampedReader notes when bytes last came in: a request may wait in the buffer.
type stampedReader struct {
	*progressReader
	at time.Time
}

func (s *stampedReader) Read(b []byte) (int, error) {
	n, err := s.progressReader.Read(b)
	s.at = time.Now()
	return n, err
}

func (c *rpcConn) read() {
	in := &stampedReader{progressReader: &progressReader{Conn: c.conn, limit: progressTimeout}}
	r := bufio.NewReaderSize(in, frameBuffer)
	for {
		in.inMessage = r.Buffered() > 0
		q, err := readRequest(r)
		if err != nil {
			return
		}
		if !c.admit(q) {
			return
		}
		left := time.Duration(q.remaining)*time.Millisecond - time.Since(in.at)
		h := c.handlers[q.kind]
		if h == nil || left <= 0 {
			c.reply(q.id, nil)
			continue
		}
		id := q.id
		h(q.payload, left, func(b []byte) { c.reply(id, b) })
	}
}

// admit waits until there is room for a request and notes it; false when the
// connection has ended, or the peer used an id twice.
func (c *rpcConn) admit(q rpcRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && (len(c.open) >= maxOpenRequests || c.bytes >= maxOpenBytes || len(c.out) >= maxQueuedOut) {
		c.room.Wait()
	}
	if _, twice := c.open[q.id]; twice || c.closed {
		return false
	}
	c.open[q.id] = len(q.payload)
	c.bytes += len(q.payload)
	return true
}

// reply queues the answer to a request; the first one counts. Answers to a
// connection that has ended are dropped: its caller has been told "unknown".
func (c *rpcConn) reply(id uint64, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, ok := c.open[id]
	if !ok || c.closed {
		return
	}
	delete(c.open, id)
	c.bytes -= size
	a := rpcResponse{id: id, payload: b}
	switch {
	case b == nil:
		a.status = statusRefused
	case len(b) > maxResponse:
		a.status, a.payload = statusLost, nil
	}
	if len(c.out) == 0 {
		c.wake.Signal()
	}
	c.out = appendResponse(c.out, a)
	if len(c.out) > maxUnread {
		c.closeLocked()
	}
	c.room.Signal()
}

// write sends what has gathered, all of it in one call.
func (c *rpcConn) write() {
	var b []byte
	for {
		c.mu.Lock()
		for len(c.out) == 0 && !c.closed {
			c.wake.Wait()
		}
		if c.closed {
			c.mu.Unlock()
			return
		}
		b, c.out = c.out, reuse(b)
		c.room.Signal()
		c.mu.Unlock()
		c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := c.conn.Write(b); err != nil {
			c.close()
			return
		}
	}
}

func (c *rpcConn) close() {
	c.mu.Lock()
	c.closeLocked()
	c.mu.Unlock()
}

func (c *rpcConn) closeLocked() {
	if !c.closed {
		c.closed = true
		c.conn.Close()
		c.wake.Signal()
		c.room.Signal()
	}
}

// reuse empties a write buffer, or lets go of it when a burst has blown it up.
func reuse(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b[:0]
}
