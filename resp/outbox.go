package resp

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// writeSize is what must be taken by a client within the write timeout: a slow
// client that reads on is not cut, one that does not read is.
const writeSize = 256 << 10

// outbox takes the replies of a connection. Nearly always they leave at once, in
// one system call. What the client does not take is queued and written by a
// goroutine that lives as long as the queue, while the connection reads on: many
// clients write a whole pipeline before they read the first reply, and would
// otherwise wait for us while we wait for them. Above limit bytes Write waits.
type outbox struct {
	nc      net.Conn
	rc      syscall.RawConn // nil: not a socket
	timeout time.Duration
	limit   int

	mu      sync.Mutex
	change  sync.Cond // of anything below
	queue   []byte
	held    share // of the budget: queue and leaving
	leaving int   // bytes that the goroutine has taken from the queue and not written
	writing bool  // there is a goroutine
	err     error

	try func(fd uintptr) bool // o.tryWrite, of now
	now []byte
}

func (o *outbox) init(nc net.Conn, rc syscall.RawConn, timeout time.Duration, limit int) {
	o.nc, o.rc, o.timeout, o.limit = nc, rc, timeout, limit
	o.change.L = &o.mu
	o.try = o.tryWrite
}

// Write writes or queues b. An error is that of a write before it, or its own.
func (o *outbox) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := b
	if o.err == nil && !o.writing {
		if rest = o.tryNow(b); len(rest) == 0 || o.err != nil {
			return len(b) - len(rest), o.err
		}
		o.writing = true
		go o.run()
	}
	if o.err == nil {
		o.queue = append(o.queue, rest...)
		if !o.held.hold(cap(o.queue) + o.leaving) {
			o.err = errBuffers
		}
	}
	for o.err == nil && len(o.queue)+o.leaving > o.limit {
		o.change.Wait()
	}
	return len(b), o.err
}

// tryNow writes what can be written without waiting and returns the rest.
func (o *outbox) tryNow(b []byte) (rest []byte) {
	if o.rc == nil {
		return b
	}
	o.now = b
	if err := o.rc.Write(o.try); err != nil {
		o.err = err
	}
	rest, o.now = o.now, nil
	return rest
}

func (o *outbox) tryWrite(fd uintptr) bool {
	for len(o.now) > 0 {
		n, err := syscall.Write(int(fd), o.now)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return true
		case err != nil:
			o.err = err
			return true
		}
		o.now = o.now[n:]
	}
	return true
}

// run writes the queue until it is empty, or until the client has taken nothing
// for the timeout: then the connection is closed.
func (o *outbox) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 && o.err == nil {
		b := o.queue
		o.queue = nil
		for len(b) > 0 && o.err == nil {
			o.leaving = len(b)
			o.mu.Unlock()
			o.nc.SetWriteDeadline(time.Now().Add(o.timeout))
			n, err := o.nc.Write(b[:min(len(b), writeSize)])
			o.mu.Lock()
			b = b[n:]
			o.leaving = len(b)
			if o.err == nil {
				o.err = err
			}
			o.held.hold(cap(o.queue) + o.leaving)
			o.change.Broadcast()
		}
	}
	if o.err != nil {
		o.queue, o.leaving = nil, 0
		o.nc.Close()
	}
	o.held.hold(0)
	o.nc.SetWriteDeadline(time.Time{})
	o.writing = false
	o.change.Broadcast()
}

// wait returns when nothing is queued any more.
func (o *outbox) wait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing {
		o.change.Wait()
	}
}
