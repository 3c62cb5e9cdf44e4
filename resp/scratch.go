package resp

import (
	"sync"

	"limitd/limiter"
)

// readSize is what one read takes at most: a few hundred commands of a pipeline.
const readSize = 16 << 10

// keepSize is the size above which a buffer is not kept for the next chunk.
const keepSize = 64 << 10

// flushSize is the size above which replies leave before their chunk is done with.
const flushSize = 64 << 10

// slowMax is the number of commands that read state or the cluster after which replies
// leave as well.
const slowMax = 16

// scratch is what a connection needs while it works on a chunk: its memory is
// that of the chunk, and goes back to a pool while the connection waits for the
// next. Between chunks all is empty but the window, which may hold the beginning
// of a command.
type scratch struct {
	in    []byte // read buffer
	r, w  int    // the window: in[r:w] is read and not yet taken
	spare []byte // its own buffer, while in is that of a large half-sent command

	parser   parser
	args     [][]byte
	more     [][]byte // further keys of calls
	chunk    limiter.Chunk
	calls    calls
	pending  []pending
	literals []byte // replies that wait for the calls before them
	out      []byte
}

// settled forgets what was answered.
func (s *scratch) settled() {
	s.chunk.Reset()
	s.pending = s.pending[:0]
	s.literals = s.literals[:0]
	clear(s.more)
	s.more = s.more[:0]
}

// drop forgets everything that was not written.
func (s *scratch) drop() {
	s.settled()
	s.out = s.out[:0]
}

// keys copies a list of keys, whose bytes stay where they are, because the next
// command will overwrite the list.
func (s *scratch) keys(keys [][]byte) [][]byte {
	from := len(s.more)
	s.more = append(s.more, keys...)
	return s.more[from:len(s.more):len(s.more)]
}

// room makes room to read into: it moves the window to the front, and grows the
// buffer when a command fills it, up to max bytes and if mem has as much; nil if not.
func (s *scratch) room(max int, mem *share) []byte {
	if s.r > 0 {
		left := s.in[s.r:s.w]
		if len(s.in) > readSize && len(left) < readSize {
			if s.in = s.spare; s.in == nil {
				s.in = make([]byte, readSize)
			}
			s.spare = nil
		}
		s.w = copy(s.in, left)
		s.r = 0
	}
	if s.w == len(s.in) {
		size := min(2*len(s.in), max)
		if !mem.hold(size) {
			return nil
		}
		in := make([]byte, size)
		copy(in, s.in)
		if len(s.in) == readSize {
			s.spare = s.in
		}
		s.in = in
	} else if len(s.in) == readSize {
		mem.hold(0)
	}
	return s.in[s.w:]
}

func newScratch(b bounds) *scratch {
	s := &scratch{in: make([]byte, readSize), parser: parser{bounds: b}}
	s.parser.begin()
	return s
}

// pool hands out scratches.
type pool struct {
	p      sync.Pool
	bounds bounds
}

func (p *pool) get() *scratch {
	if s, _ := p.p.Get().(*scratch); s != nil {
		return s
	}
	return newScratch(p.bounds)
}

// put takes a scratch back, without what an unusual chunk has made large.
func (p *pool) put(s *scratch) {
	s.r, s.w = 0, 0
	s.parser.begin()
	s.drop()
	if s.spare != nil {
		s.in, s.spare = s.spare, nil
	}
	if len(s.in) != readSize {
		s.in = make([]byte, readSize)
	}
	if cap(s.out) > keepSize {
		s.out = nil
	}
	if cap(s.literals) > keepSize {
		s.literals = nil
	}
	if cap(s.chunk.Calls) > keepSize/128 {
		s.chunk = limiter.Chunk{}
	}
	if cap(s.pending) > keepSize/16 {
		s.pending = nil
	}
	if cap(s.args) > keepSize/64 {
		s.args, s.parser.spans = nil, nil
	}
	if cap(s.more) > keepSize/64 {
		s.more = nil
	}
	p.p.Put(s)
}
