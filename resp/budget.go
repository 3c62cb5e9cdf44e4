package resp

import (
	"errors"
	"sync/atomic"
)

// errBuffers ends a connection that needs more memory for what it has half sent, or
// has not read, than there is for all connections together.
var errBuffers = errors.New("half-sent commands and unread replies of all connections reach resp.max_buffers")

// budget is the memory of what waits for clients: commands of which more must come,
// and replies that are not read. What a connection works on is not in it.
type budget struct {
	max  int64
	used atomic.Int64
}

// take changes what is used by n bytes; false, and nothing has changed, if that is
// more than there is.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) > b.max && n > 0 {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// share is the part of a budget that one holder has.
type share struct {
	of   *budget
	held int
}

// hold makes the share n bytes; false, and it is what it was, if there is not as much.
func (s *share) hold(n int) bool {
	if n == s.held {
		return true
	}
	if !s.of.take(n - s.held) {
		return false
	}
	s.held = n
	return true
}
