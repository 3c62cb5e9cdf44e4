package resp

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
)

const (
	lingerTime = 100 * time.Millisecond // for the client to read our last words
	maxTurning = 64                     // refused connections that linger at once
)

// turnAway tells a client why it is refused, and closes. Many at once are closed
// without a word: to refuse must cost less than to serve.
func (s *Server) turnAway(nc net.Conn, text string) {
	s.mu.Lock()
	room := s.turning < maxTurning
	if room {
		s.turning++
	}
	s.mu.Unlock()
	if !room {
		nc.Close()
		return
	}
	go func() {
		nc.SetWriteDeadline(time.Now().Add(lingerTime))
		nc.Write(redcon.AppendError(nil, text))
		linger(nc)
		s.mu.Lock()
		s.turning--
		s.mu.Unlock()
	}()
}

// linger closes a connection so that what was written arrives: a close with
// unread input resets the connection, and a reset overtakes the last replies.
func linger(nc net.Conn) {
	defer nc.Close()
	if w, ok := nc.(interface{ CloseWrite() error }); ok && w.CloseWrite() == nil {
		nc.SetReadDeadline(time.Now().Add(lingerTime))
		b := make([]byte, 512)
		for err := error(nil); err == nil; {
			_, err = nc.Read(b)
		}
	}
}

// closedFor tells the log why connections are closed, seldom.
func (s *Server) closedFor(client string, err error) {
	if s.said.now(time.Now()) {
		s.log.Warn("closing a connection; others may go the same way unsaid for 10 s", "client", client, "reason", err)
	}
}

// seldom says when to speak again of what happens often.
type seldom struct{ last atomic.Int64 }

func (s *seldom) now(t time.Time) bool {
	last := s.last.Load()
	return t.UnixNano()-last >= int64(10*time.Second) && s.last.CompareAndSwap(last, t.UnixNano())
}

// tellOfHTTP tells the log that a connection was closed because it spoke HTTP, seldom.
func (s *Server) tellOfHTTP(client string) {
	if s.saidHTTP.now(time.Now()) {
		s.log.Warn("HTTP on the RESP port: the connection is closed without a reply", "client", client)
	}
}

// backoff spaces attempts to accept after errors, such as too many open files,
// and says when to speak of it.
type backoff struct {
	delay time.Duration
	said  time.Time
}

func (b *backoff) reset() { b.delay = 0 }

func (b *backoff) next(now time.Time) (d time.Duration, say bool) {
	b.delay = min(max(2*b.delay, 5*time.Millisecond), time.Second)
	if say = now.Sub(b.said) >= 10*time.Second; say {
		b.said = now
	}
	return b.delay, say
}
