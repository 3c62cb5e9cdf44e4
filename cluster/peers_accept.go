package cluster

import (
	"net"
	"time"
)

// accept takes connections until Close. A failing accept (no file descriptors
// left) is tried again with a growing pause.
func (p *peers) accept() {
	defer p.wg.Done()
	pause := 5 * time.Millisecond
	for {
		conn, err := p.ln.Accept()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			p.log.warn("accept", "accept on the peer port failed", "error", err)
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		select {
		case p.handshakes <- struct{}{}:
		default:
			p.log.warn("handshakes", "too many handshakes at once on the peer port", "limit", maxHandshakes, "remote", conn.RemoteAddr())
			conn.Close()
			continue
		}
		if !p.track(conn) {
			<-p.handshakes
			conn.Close()
			continue
		}
		go p.serve(conn)
	}
}

// serve makes the handshake and hands the connection to who it is for.
func (p *peers) serve(conn net.Conn) {
	defer p.wg.Done()
	began := p.cfg.Clock.Boot()
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	h, err := p.answer(conn)
	<-p.handshakes
	if err != nil {
		p.untrack(conn)
		return
	}
	conn.SetDeadline(time.Time{})
	switch h.purpose {
	case purposeRaft:
		var c *raftConn
		c = newRaftConn(conn, progressTimeout, func() {
			p.raft.ages.remove(&c.age)
			p.untrack(conn)
		})
		p.raft.ages.add(&c.age, h.raftID, began, p.cfg.Clock.Boot)
		p.raft.offer(c)
	case purposeRPC:
		serveRPC(conn, p.cfg.Handlers)
		p.untrack(conn)
	}
}

// track notes an accepted connection, so that Close can close it; false if there
// are too many or the port is closed. It also counts a goroutine for serve.
func (p *peers) track(conn net.Conn) bool {
	p.mu.Lock()
	full, closed := len(p.accepted) >= maxAccepted, p.closed
	if !full && !closed {
		p.accepted[conn] = struct{}{}
		p.wg.Add(1)
	}
	p.mu.Unlock()
	if full {
		p.log.warn("accepted", "too many connections on the peer port", "limit", maxAccepted, "remote", conn.RemoteAddr())
	}
	return !full && !closed
}

// untrack closes an accepted connection and forgets it.
func (p *peers) untrack(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	delete(p.accepted, conn)
	p.mu.Unlock()
}
