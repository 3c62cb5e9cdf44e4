package resp

import (
	"bytes"
	"io"
	"testing"

	"limitd/algo"
	"limitd/limiter"
)

// yes answers every call at once, so that what is measured is the wire.
type yes struct{ *fakeLimiter }

func (yes) Do(c *limiter.Chunk) {
	for i := range c.Calls {
		c.Calls[i].Verdict = algo.Verdict{Allowed: true, Limit: 16, Remaining: 15, ResetAfter: 5400e9}
	}
}

// pipeline is n CL.THROTTLE calls as redis-benchmark sends them.
func pipeline(n int) []byte {
	return bytes.Repeat(commandBytes("CL.THROTTLE", "key:000000012345", "1000000", "1000", "3600", "1"), n)
}

func hotSession(tb testing.TB) *session {
	s := newSession(tb, Config{})
	s.srv.limiter = yes{s.limiter}
	s.out = io.Discard
	return s
}

func BenchmarkThrottle(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"one", 1}, {"pipelined64", 64}} {
		b.Run(c.name, func(b *testing.B) {
			s, input := hotSession(b), pipeline(c.n)
			b.ReportAllocs()
			for i := 0; i < b.N; i += c.n {
				if n, _, err := s.answer(input); n != len(input) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkParser(b *testing.B) {
	input := pipeline(64)
	p := parser{bounds: bounds{1024, 64 << 10, 1 << 20}}
	p.begin()
	var args [][]byte
	b.ReportAllocs()
	for i := 0; i < b.N; i += 64 {
		for rest := input; len(rest) > 0; {
			a, n, err := p.next(rest, args[:0])
			if err != nil {
				b.Fatal(err)
			}
			args, rest = a, rest[n:]
		}
	}
}

func BenchmarkPing(b *testing.B) {
	s, input := hotSession(b), bytes.Repeat(commandBytes("PING"), 64)
	b.ReportAllocs()
	for i := 0; i < b.N; i += 64 {
		s.answer(input)
	}
}

func TestThrottleDoesNotAllocate(t *testing.T) {
	s, input := hotSession(t), pipeline(64)
	work := func() {
		if n, _, err := s.answer(input); n != len(input) || err != nil {
			t.Fatal(n, err)
		}
	}
	work() // buffers grow
	n := testing.AllocsPerRun(100, work)
	for range 5 { // what a test before has left running allocates too
		n = min(n, testing.AllocsPerRun(100, work))
	}
	if n > 0 {
		t.Errorf("a chunk of 64 calls allocates %.1f times", n)
	}
}
