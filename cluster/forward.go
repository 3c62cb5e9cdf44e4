package cluster

import (
	"context"
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
	used time.Time // last asked for; the peers', under their mutex

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
