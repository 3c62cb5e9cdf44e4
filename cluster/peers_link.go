package cluster

import (
	"bufio"
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"limitd/fsm"
)

// run dials and writes until ctx ends. There is one for each link.
func (l *link) run(ctx context.Context) {
	var (
		buf     []byte
		batch   []sentFrame
		pause   = minRedial
		dialled time.Time
		readers sync.WaitGroup
	)
	defer readers.Wait()
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.broken && !l.closed {
			l.wake.Wait()
		}
		if l.broken || l.closed {
			l.disconnect()
		}
		if l.closed {
			l.refuseQueued()
			l.mu.Unlock()
			return
		}
		if l.conn != nil {
			buf, batch = l.gather(buf[:0], batch[:0])
			conn := l.conn
			l.mu.Unlock()
			l.write(conn, buf, batch)
			buf = reuse(buf)
			continue
		}
		idle := len(l.queue) == 0
		l.mu.Unlock()
		if idle {
			continue
		}

		if wait := time.Until(dialled.Add(pause/2 + rand.N(pause/2))); wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
		conn, err := l.dial(ctx)
		dialled = time.Now()
		l.mu.Lock()
		l.err = err
		if err != nil {
			l.refuseQueued()
			pause = min(2*pause, maxRedial)
		} else {
			pause = minRedial
			l.conn, l.broken, l.asked = conn, false, false
			readers.Go(func() { l.read(conn) })
		}
		l.mu.Unlock()
	}
}

// sentFrame is where a call lies in the buffer that is being written.
type sentFrame struct {
	id    uint64
	start int
}

// gather encodes queued calls, up to about gatherBytes, and counts them as sent.
// l.mu is held.
func (l *link) gather(buf []byte, batch []sentFrame) ([]byte, []sentFrame) {
	now := time.Now()
	n := 0
	for n < len(l.queue) && len(buf) < gatherBytes {
		c := l.queue[n]
		n++
		if c.stage == callDropped {
			continue
		}
		left := c.deadline.Sub(now).Milliseconds()
		if left <= 0 {
			l.end(c, nil, fsm.Refused)
			continue
		}
		l.lastID++
		c.id, c.stage = l.lastID, callSent
		l.sent[c.id] = c
		l.bytes -= len(c.payload)
		batch = append(batch, sentFrame{id: c.id, start: len(buf)})
		buf = appendRequest(buf, rpcRequest{id: c.id, kind: c.kind, remaining: uint32(min(left, 1<<31)), payload: c.payload})
		c.payload = nil
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if !l.asked && len(batch) > 0 {
		l.asked, l.quiet = true, now
	}
	return buf, batch
}

// write sends a batch. When that fails, the frames of which no byte was taken by
// the kernel are refused; what was sent stays for disconnect.
func (l *link) write(conn net.Conn, buf []byte, batch []sentFrame) {
	if len(batch) == 0 {
		return
	}
	conn.SetWriteDeadline(time.Now().Add(quietLimit))
	n, err := conn.Write(buf)
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	for _, f := range batch {
		if c := l.sent[f.id]; c != nil && f.start >= n {
			delete(l.sent, f.id)
			l.end(c, nil, fsm.Refused)
		}
	}
}

// read takes answers until the connection ends.
func (l *link) read(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, frameBuffer)
	for {
		a, err := readResponse(r)
		l.mu.Lock()
		if err != nil || a.id > l.lastID {
			if l.conn == conn {
				l.broken = true
				l.wake.Signal()
			}
			l.mu.Unlock()
			return
		}
		c := l.sent[a.id]
		delete(l.sent, a.id)
		l.asked, l.quiet = len(l.sent) > 0, time.Now()
		if c != nil {
			l.answered(c, a)
		}
		l.mu.Unlock()
	}
}

func (l *link) answered(c *call, a rpcResponse) {
	switch a.status {
	case statusAnswer:
		l.end(c, a.payload, fsm.Applied)
	case statusRefused:
		l.end(c, nil, fsm.Refused)
	default:
		l.end(c, nil, fsm.Unknown)
	}
}

// disconnect drops the connection; what was sent over it is unknown. l.mu is held.
func (l *link) disconnect() {
	if l.conn != nil {
		l.conn.Close()
	}
	l.conn, l.broken = nil, false
	for id, c := range l.sent {
		delete(l.sent, id)
		l.end(c, nil, fsm.Unknown)
	}
}

// refuseQueued refuses what was not sent. l.mu is held.
func (l *link) refuseQueued() {
	for _, c := range l.queue {
		l.end(c, nil, fsm.Refused)
	}
	clear(l.queue)
	l.queue = l.queue[:0]
}
