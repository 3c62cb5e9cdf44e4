package resp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What anybody may send: any bytes, in any pieces. The replies do not depend on the
// pieces, memory and work are bounded by what is sent and what is answered.

// killers have killed or stopped servers of this protocol.
var killers = []string{
	"*1\r\n$9223372036854775807\r\n",
	"*9000000000000000000\r\n",
	"*1\r\n$-9223372036854775808\r\n",
	"*-9223372036854775808\r\n",
	strings.Repeat("*1\r\n", 1000),
	strings.Repeat("*-1\r\n", 500) + "PING\r\n",
	"*3\r\n$-1\r\n$-1\r\n$-1\r\n",
	"ECHO " + strings.Repeat("\"a\"'", 300) + "\r\n",
	"ECHO \"" + strings.Repeat("\\x41", 300) + "\"\r\n",
	"*500\r\n$6\r\nEXISTS\r\n" + strings.Repeat("$0\r\n\r\n", 499),
	strings.Repeat("A\n", 500),
	strings.Repeat("\n", 2000),
	strings.Repeat("a ", 1025) + "\r\n",
	"CLIENT TRACKING ON BCAST PREFIX a PREFIX b\r\nHELLO 3\r\nEXISTS a b c\r\nSUBSCRIBE a a a\r\nUNSUBSCRIBE\r\n",
	"SUBSCRIBE " + strings.Repeat("a ", 500) + "\r\n",
	"SUBSCRIBE " + strings.Join(repeated(200), " ") + "\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"COMMAND GETKEYS RL.TAKEALL 99999999999 a 1/1s\r\n",
}

// pieces cuts b: how is a length for all, or above 127 the seed of lengths.
func pieces(b []byte, how uint8) (list [][]byte) {
	r := rand.New(rand.NewPCG(uint64(how), 0))
	for len(b) > 0 {
		n := int(how) + 1
		if how > 127 {
			n = 1 + r.IntN(1<<r.IntN(12))
		}
		n = min(n, len(b))
		list = append(list, b[:n:n])
		b = b[n:]
	}
	return list
}

// request is what the parser makes of input, in lower case.
type request struct {
	cmds   [][]string
	broken bool // it ends with a protocol error
}

func requestOf(b bounds, input []byte) (r request) {
	cmds, err := frames(b, input)
	for i, cmd := range cmds {
		for j := range cmd {
			cmds[i][j] = strings.ToLower(cmd[j])
		}
	}
	return request{cmds, errors.As(err, new(protocolError))}
}

// has says that a command or a subcommand begins with one of the words.
func (r *request) has(words ...string) bool { return r.count(words...) > 0 }

func (r *request) count(words ...string) (n int) {
	for _, cmd := range r.cmds {
		found := false
		for _, w := range words {
			found = found || strings.HasPrefix(cmd[0], w) || len(cmd) > 1 && strings.HasPrefix(cmd[1], w)
		}
		n += oneIf(found)
	}
	return n
}

// checkReplies feeds input and checks that every command got one well-formed reply,
// that the same input in pieces gets the same, and what both cost.
func checkReplies(t failer, s func() *session, input []byte, how uint8) {
	t.Helper()
	one := s()
	out, err := one.feed(bytes.Clone(input))
	r := requestOf(one.srv.pool.bounds, input)
	want := len(r.cmds) + oneIf(r.broken)
	types := resp2Types
	if r.has("hello") {
		types = resp3Types + " " // both: the version may have changed
	}
	n, rest := 0, []byte(out)
	for len(rest) > 0 {
		next, err := skipReply(rest, types)
		if err != nil && types == resp2Types {
			t.Fatalf("%q: reply %d: %v", input, n, err)
		} else if err != nil {
			return // a null of RESP2 in a session that spoke both
		}
		rest = next
		n++
	}
	ended := errors.Is(err, errQuit) || errors.Is(err, errAlien)
	// CLIENT REPLY takes replies away; SUBSCRIBE has one per channel, and CLIENT TRACKING adds messages.
	other := r.has("reply", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "tracking")
	if n != want && !ended && !other {
		t.Fatalf("%q: %d replies to %d commands: %q", input, n, want, out)
	}
	if most := len(r.cmds); sum(one.limiter.chunks()) > most {
		t.Fatalf("%q: %d calls for %d commands", input, sum(one.limiter.chunks()), most)
	}
	if r.has("info", "list", "histogram") || ended {
		return // tells times
	}
	cut := s()
	var got strings.Builder
	for _, p := range pieces(input, how) {
		o, err := cut.feed(p)
		got.WriteString(o)
		if err != nil {
			break
		}
	}
	if got.String() != out {
		t.Fatalf("%q in pieces (%d): %q\nin one: %q", input, how, got.String(), out)
	}
}

// The bytes that may be allocated for a byte of input and of output, for a command, and
// for one that tells about the server. What a connection has at first is not counted.
const (
	perByte    = 128
	perCommand = 2 << 10
	perReport  = 64 << 10
	perSession = 256 << 10
)

// checkMemory feeds input in pieces and measures what is allocated meanwhile.
func checkMemory(t failer, s func() *session, input []byte, how uint8) {
	t.Helper()
	r := requestOf(s().srv.pool.bounds, input)
	list := pieces(bytes.Clone(input), how)
	least := uint64(1 << 62)
	var most uint64
	for range 3 { // others of the process allocate too, now and then
		one, written := s(), 0
		one.out = writerFunc(func(b []byte) (int, error) {
			written += len(b)
			return len(b), nil
		})
		one.rest = make([]byte, 0, len(input))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, p := range list {
			one.rest = append(one.rest, p...)
			if !one.take() {
				break
			}
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
		most = uint64(perSession + perByte*(len(input)+written) + perCommand*len(r.cmds) + perReport*r.count("info", "command", "client", "config", "latency", "count", "docs", "list", "help", "scan", "rl."))
		if least <= most {
			return
		}
	}
	t.Fatalf("%q (%d): %d bytes were allocated for %d bytes and %d commands, at most %d may be", input, how, least, len(input), len(r.cmds), most)
}

// take answers what has come, without a copy; false: the connection ends.
func (s *session) take() bool {
	for more := true; more; {
		n, again, err := s.answer(s.rest)
		if err != nil {
			return false
		}
		if n > 0 {
			s.rest = s.rest[:copy(s.rest, s.rest[n:])]
		}
		more = again
	}
	return true
}

// checkWork counts the bytes that the parser looks at: each once, and at each call the
// line again whose end is yet to come.
func checkWork(t failer, b bounds, input []byte, how uint8) {
	t.Helper()
	p := parser{bounds: b}
	p.begin()
	buf := bytes.Clone(input)
	looked, steps, from, to := 0, 0, 0, 0
	for _, piece := range pieces(input, how) {
		to += len(piece)
		for {
			at := p.at
			_, n, err := p.next(buf[from:to:to], nil)
			steps++
			switch {
			case err == errIncomplete:
				again := 0
				if p.bulk < 0 && buf[from] == '*' {
					again = to - from - p.at
				}
				if again > maxDigits+4 {
					t.Fatalf("%q (%d): %d bytes will be looked at again", input, how, again)
				}
				looked += p.at - at + again
			case err == nil:
				looked += n - at
			default:
				return
			}
			if most := 2*to + (maxDigits+4)*steps; looked > most {
				t.Fatalf("%q (%d): %d bytes were looked at of %d in %d steps", input, how, looked, to, steps)
			}
			from += n
			if err != nil || from == to {
				break
			}
		}
	}
}

// smallSession makes sessions of one server with small bounds, each with state of its own.
func smallSession(tb testing.TB) func() *session {
	srv := newSession(tb, Config{MaxPipeline: 8, OutputBuffer: 4096}).srv
	return func() *session {
		s := &session{limiter: newFakeLimiter(), admin: newFakeAdmin()}
		srv.limiter, srv.admin = s.limiter, s.admin
		s.use(srv)
		return s
	}
}

// addSessions adds some requests of the golden sessions: all of them are tried by
// TestEveryCommandGetsOneReply, and here they take time from new ones.
func addSessions(f *testing.F) {
	for i, in := range sessionInputs(f) {
		if i%6 == 0 {
			f.Add(in, uint8(7))
		}
	}
}

func addKillers(f *testing.F) {
	for _, in := range killers {
		f.Add([]byte(in), uint8(0))
		f.Add([]byte(in), uint8(200))
	}
}

func FuzzCommands(f *testing.F) {
	addSessions(f)
	addKillers(f)
	small := smallSession(f)
	f.Fuzz(func(t *testing.T, input []byte, how uint8) {
		checkReplies(t, small, input, how)
		checkMemory(t, small, input, how)
	})
}

// What is too large for a fuzz target to play with.
func TestLargeKillers(t *testing.T) {
	s := func() *session { return newSession(t, Config{}) }
	for _, in := range []string{
		strings.Repeat("a", 70000), strings.Repeat("\n", 100000), strings.Repeat("A\n", 5000), strings.Repeat("*1\r\n", 20000),
		"ECHO " + strings.Repeat("'\"'", 20000) + "\r\n", "*1024\r\n" + strings.Repeat("$0\r\n\r\n", 1024), "SUBSCRIBE " + strings.Repeat("a ", 1000) + "\r\n",
	} {
		for _, how := range []uint8{0, 100, 200} {
			checkReplies(t, s, []byte(in), how)
			checkMemory(t, s, []byte(in), how)
			checkWork(t, testBounds, []byte(in), how)
		}
	}
}

// A request of 80,000 tiny arguments, which the bounds allow here, costs what it is long,
// however it comes.
func TestManyArgumentsAreCheap(t *testing.T) {
	input := append(header(nil, '*', 80001), "$6\r\nEXISTS\r\n"...)
	input = append(input, bytes.Repeat([]byte("$1\r\na\r\n"), 80000)...)
	s := func() *session { return newSession(t, Config{MaxArgs: 100000}) }
	for _, how := range []uint8{0, 200} {
		checkMemory(t, s, input, how)
		checkWork(t, s().srv.pool.bounds, input, how)
	}
}

// pair is a connection that a server serves, and its client's end.
func pair(t testing.TB, s *Server) (client net.Conn, over chan struct{}) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		ends[i], err = net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.admit(ends[0])
	over = make(chan struct{})
	go func() {
		s.wg.Wait()
		close(over)
	}()
	return ends[1], over
}

// A connection answers what a session does, whatever its reads yield, and leaves
// nothing behind.
func FuzzConnection(f *testing.F) {
	addSessions(f)
	addKillers(f)
	f.Fuzz(func(t *testing.T, input []byte, how uint8) {
		want, end := newSession(t, Config{}).feed(bytes.Clone(input))
		r := requestOf(testBounds, input)
		if errors.Is(end, errAlien) {
			return // what was not written is dropped
		}
		s := NewServer(Config{Logger: quiet()}, newFakeLimiter(), newFakeAdmin())
		c, over := pair(t, s)
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		list := pieces(input, how)
		go func() {
			sent := uint64(0)
			for i, p := range list {
				if i == 200 {
					p = bytes.Join(list[i:], nil)
				}
				c.Write(p) // fails once the server has had enough
				sent += uint64(len(p))
				if i == 200 {
					break
				}
				for range 100 { // for the server to read it before the next
					if s.counters.bytesIn.Load() >= sent {
						break
					}
					runtime.Gosched()
				}
			}
			c.(*net.UnixConn).CloseWrite()
		}()
		got, err := io.ReadAll(c)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Fatalf("%q (%d): it does not end", input, how)
		}
		if string(got) != want && !r.has("info", "list", "histogram", "kill") {
			t.Fatalf("%q (%d): %q\na session: %q", input, how, got, want)
		}
		select {
		case <-over:
		case <-time.After(10 * time.Second):
			t.Fatalf("%q (%d): the connection is not gone", input, how)
		}
		eventually(t, "nothing is left behind", func() bool {
			return s.buffers.used.Load() == 0 && s.connected() == 0 && len(s.turns) == 0
		})
	})
}
