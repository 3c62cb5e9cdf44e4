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

const (
	maxCalls       = 16384    // of one link, queued and unanswered
	maxQueuedBytes = 16 << 20 // of one link, not yet written
	gatherBytes    = 256 << 10

	minRedial = 25 * time.Millisecond
	maxRedial = 250 * time.Millisecond

	// A peer that has been asked and has said nothing for so long is cut off when a
	// call to it times out: what follows is then refused, instead of vanishing.
	quietLimit = 3 * time.Second
)

// link is the way to one peer: a queue of calls, and the one connection that they
// are written to. It is dialed when there is something to send.
//
// A call is queued, then sent, then answered. It counts as sent from before its
// first byte may have left, and a sent call is never sent again: if the connection
// ends, its outcome is unknown. A queued call that cannot be sent is refused.
type link struct {
	addr string
	dial func(context.Context) (net.Conn, error)

	mu     sync.Mutex
	wake   sync.Cond // run waits for something to do
	queue  []*call
	bytes  int // payload bytes in queue
	sent   map[uint64]*call
	lastID uint64
	conn   net.Conn // nil: none
	broken bool     // conn has failed
	closed bool
	err    error // of the newest dial

	asked bool      // something was sent since the peer was last heard
	quiet time.Time // since when it is silent, if asked
}

// call is one call under way. The fields are the link's, under its mutex.
type call struct {
	kind     uint8
	payload  []byte
	deadline time.Time
	id       uint64
	stage    callStage
	reply    []byte
	outcome  fsm.Outcome
	done     chan struct{} // one token when it has ended, for the caller
	timer    *time.Timer
}

type callStage uint8

const (
	callQueued  callStage = iota
	callSent              // in link.sent
	callEnded             // with a token in done
	callDropped           // by its caller, while queued: the queue still holds it
)

var calls = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &call{done: make(chan struct{}, 1), timer: t}
}}

func newLink(addr string, dial func(context.Context) (net.Conn, error)) *link {
	l := &link{addr: addr, dial: dial, sent: make(map[uint64]*call)}
	l.wake.L = &l.mu
	return l
}

// call is peers.call to this peer.
func (l *link) call(kind uint8, payload []byte, timeout time.Duration) ([]byte, fsm.Outcome) {
	if timeout <= 0 || len(payload) > maxRequest {
		return nil, fsm.Refused
	}
	c := calls.Get().(*call)
	c.kind, c.payload, c.stage = kind, payload, callQueued
	c.deadline = time.Now().Add(timeout)

	l.mu.Lock()
	if l.closed || len(l.queue)+len(l.sent) >= maxCalls || l.bytes+len(payload) > maxQueuedBytes {
		l.mu.Unlock()
		c.payload = nil
		calls.Put(c)
		return nil, fsm.Refused
	}
	l.queue = append(l.queue, c)
	l.bytes += len(payload)
	if len(l.queue) == 1 {
		l.wake.Signal()
	}
	l.mu.Unlock()

	c.timer.Reset(timeout)
	select {
	case <-c.done:
		c.timer.Stop()
	case <-c.timer.C:
		if o, gone := l.abandon(c); gone {
			return nil, o
		}
		<-c.done
	}
	reply, o := c.reply, c.outcome
	c.reply, c.payload = nil, nil
	calls.Put(c)
	return reply, o
}

// abandon takes a call back whose time is over, unless it has just ended.
func (l *link) abandon(c *call) (o fsm.Outcome, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c.stage {
	case callQueued:
		c.stage = callDropped
		l.bytes -= len(c.payload)
		c.payload = nil
		return fsm.Refused, true
	case callSent:
		delete(l.sent, c.id)
		if l.asked && l.conn != nil && time.Since(l.quiet) >= quietLimit {
			l.conn.Close()
		}
		c.stage = callEnded
		return fsm.Unknown, true
	}
	return 0, false
}

// end gives a call its outcome. l.mu is held.
func (l *link) end(c *call, reply []byte, o fsm.Outcome) {
	if c.stage == callDropped {
		return
	}
	if c.stage == callQueued {
		l.bytes -= len(c.payload)
	}
	c.payload = nil
	c.stage, c.reply, c.outcome = callEnded, reply, o
	c.done <- struct{}{}
}

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

func (l *link) lastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.conn.Close()
	}
	l.wake.Signal()
}
