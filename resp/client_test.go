package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"limitd/limiter"
)

const allowed = "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:10\r\n"

// take is a call that is allowed once per key.
func take(key string) []byte { return commandBytes("CL.THROTTLE", key, "0", "1", "10") }

// A read's commands are one Do, however they are mixed with commands that
// concern the connection alone, and the replies keep their order.
func TestOneReadIsOneChunk(t *testing.T) {
	s := newSession(t, Config{})
	got, err := s.feed(slices.Concat(
		take("a"), commandBytes("PING"), take("b"), commandBytes("SELECT", "2"), take("a"), []byte("ECHO inline\r\n"),
		commandBytes("CL.THROTTLE", "a", "x", "1", "1"), commandBytes("NOSUCH"), commandBytes("EXISTS", "a", "b"), commandBytes("CLIENT", "ID")))
	want := allowed + "+PONG\r\n" + allowed + "+OK\r\n" + allowed + "$6\r\ninline\r\n" +
		"-ERR max_burst: Couldn't parse as integer: x\r\n" + "-ERR unknown command 'NOSUCH', with args beginning with: \r\n" + ":1\r\n" + ":1\r\n"
	if got != want || err != nil {
		t.Errorf("%q, %v\nwant %q", got, err, want)
	}
	if n := s.limiter.chunks(); !slices.Equal(n, []int{4}) {
		t.Errorf("calls per Do: %v, want [4]", n)
	}
}

// What reads state sees the calls that were sent before it.
func TestReadsSeeTheCallsBefore(t *testing.T) {
	s := newSession(t, Config{})
	got, _ := s.feed(slices.Concat(take("a"), commandBytes("DBSIZE"), take("b"), take("c"), commandBytes("DBSIZE")))
	if want := allowed + ":1\r\n" + allowed + allowed + ":3\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := s.limiter.chunks(); !slices.Equal(n, []int{1, 2}) {
		t.Errorf("calls per Do: %v, want [1 2]", n)
	}
}

func TestPipelineLongerThanAChunk(t *testing.T) {
	s := newSession(t, Config{MaxPipeline: 100})
	var input []byte
	for i := range 250 {
		input = append(input, take(fmt.Sprint(i))...)
	}
	if got, err := s.feed(input); got != strings.Repeat(allowed, 250) || err != nil {
		t.Errorf("%d bytes of replies, %v", len(got), err)
	}
	if n := s.limiter.chunks(); !slices.Equal(n, []int{100, 100, 50}) {
		t.Errorf("calls per Do: %v", n)
	}
}

// The protocol changes between two commands of one read.
func TestHelloInMidPipeline(t *testing.T) {
	s := newSession(t, Config{})
	got, _ := s.feed(slices.Concat(
		take("a"), commandBytes("CLIENT", "GETNAME"), commandBytes("HELLO", "3"), commandBytes("CLIENT", "GETNAME"),
		take("b"), commandBytes("CONFIG", "GET", "save"), commandBytes("HELLO", "2"), commandBytes("CLIENT", "GETNAME")))
	i := strings.Index(got, "%7\r\n")
	if i < 0 || got[:i] != allowed+"$-1\r\n" {
		t.Fatalf("before HELLO 3: %q", got)
	}
	for _, want := range []string{"$5\r\nproto\r\n:3\r\n", "*0\r\n_\r\n" + allowed + "%1\r\n$4\r\nsave\r\n$0\r\n\r\n*14\r\n", "$5\r\nproto\r\n:2\r\n"} {
		if !strings.Contains(got[i:], want) {
			t.Errorf("%q lacks %q", got[i:], want)
		}
	}
	if !strings.HasSuffix(got, "*0\r\n$-1\r\n") {
		t.Errorf("after HELLO 2: %q", got)
	}
}

func TestClientReply(t *testing.T) {
	s := newSession(t, Config{})
	reply := func(mode string) []byte { return commandBytes("CLIENT", "REPLY", mode) }
	got, _ := s.feed(slices.Concat(
		reply("SKIP"), take("a"), take("b"), // a is charged unheard
		reply("skip"), commandBytes("NOSUCH"), commandBytes("PING"),
		reply("OFF"), take("c"), commandBytes("PING"), commandBytes("INFO"), commandBytes("CL.THROTTLE"), reply("ON"),
		reply("SKIP"), reply("ON"),
		commandBytes("EXISTS", "a", "b", "c")))
	if want := allowed + "+PONG\r\n+OK\r\n+OK\r\n:3\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.feed(reply("OFF"))
	if got := s.do("RESET"); got != "+RESET\r\n" {
		t.Errorf("RESET: %q", got)
	}
}

// Whatever came before a protocol error is answered, nothing after it is done.
func TestProtocolErrorEndsTheConnectionInOrder(t *testing.T) {
	s := newSession(t, Config{})
	got, err := s.feed(slices.Concat(take("a"), commandBytes("PING"), []byte("*1\r\n+PING\r\n"), take("b")))
	if want := allowed + "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n"; got != want || err == nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if n := s.limiter.Size(0); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

func TestQuitEndsTheConnectionInOrder(t *testing.T) {
	s := newSession(t, Config{})
	got, err := s.feed(slices.Concat(take("a"), commandBytes("QUIT"), take("b")))
	if got != allowed+"+OK\r\n" || err != errQuit || s.limiter.Size(0) != 1 {
		t.Errorf("%q, %v, %d keys", got, err, s.limiter.Size(0))
	}
}

// A browser that is made to send to this port gets nothing, and nothing is done.
func TestHTTPIsCutOff(t *testing.T) {
	for _, in := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE a 0 1 10\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "host: x\r\n",
		"HEAD / HTTP/1.0\n", "PUT /a?b=\"c HTTP/2\r\n", "OPTIONS * HTTP/1.1 \r\n", "PING HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "POST /\r\n",
	} {
		s := newSession(t, Config{})
		if got, err := s.feed([]byte(in)); got != "" || err != errAlien || len(s.limiter.chunks()) > 0 {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// A chunk whose replies outgrow the output buffer is written in parts, so that
// a few hundred bytes of commands cannot hold hundreds of megabytes of replies.
func TestLargeRepliesAreWrittenInParts(t *testing.T) {
	s := newSession(t, Config{OutputBuffer: 32 << 10})
	var largest, writes int
	s.out = writerFunc(func(b []byte) (int, error) {
		largest, writes = max(largest, len(b)), writes+1
		return len(b), nil
	})
	one := len(newSession(t, Config{}).do("COMMAND", "DOCS"))
	s.feed(append(take("a"), bytes.Repeat(commandBytes("COMMAND", "DOCS"), 500)...))
	if largest > 32<<10+one+len(allowed) || writes < 500*one/(largest+1) {
		t.Errorf("%d writes, the largest of %d bytes", writes, largest)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// After an error of the connection nothing more is decided for it.
func TestNothingIsDoneForAClientThatIsGone(t *testing.T) {
	s := newSession(t, Config{OutputBuffer: 1})
	s.out = writerFunc(func([]byte) (int, error) { return 0, fmt.Errorf("gone") })
	if _, err := s.feed(slices.Concat(commandBytes("PING"), take("a"))); err == nil || s.limiter.Size(0) != 0 {
		t.Errorf("%v, %d keys", err, s.limiter.Size(0))
	}
}

// Keys of DEL must survive the commands that follow it in the chunk.
func TestManyKeysInOneCall(t *testing.T) {
	s := newSession(t, Config{})
	s.feed(slices.Concat(take("a"), take("b"), take("c"), take("d")))
	got, _ := s.feed(slices.Concat(
		commandBytes("DEL", "a", "b", "x"), commandBytes("EXISTS", "c", "d", "c"), commandBytes("DEL", "c", "d"), commandBytes("EXISTS", "a", "b", "c", "d")))
	if want := ":2\r\n:3\r\n:2\r\n:0\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.do("DEL", "a", strings.Repeat("k", 1025)); !strings.Contains(got, "limits.max_key = 1024") {
		t.Errorf("a key too long: %q", got)
	}
	s.limiter.status["a"] = limiter.InDoubt
	if got := s.do("DEL", "a", "b"); !strings.HasPrefix(got, "-INDOUBT ") {
		t.Errorf("in doubt: %q", got)
	}
}

func TestNamesAreBounded(t *testing.T) {
	s := newSession(t, Config{})
	long := strings.Repeat("n", 129)
	for _, args := range [][]string{
		{"CLIENT", "SETNAME", long}, {"CLIENT", "SETINFO", "LIB-NAME", long}, {"CLIENT", "SETINFO", "LIB-VER", long}, {"HELLO", "3", "SETNAME", long},
		{"CLIENT", "SETNAME", "a\nb"}, {"CLIENT", "SETNAME", "é"},
	} {
		if got := s.do(args...); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%.40q: %q", args, got)
		}
	}
	if got := s.do("CLIENT", "GETNAME"); got != "$-1\r\n" {
		t.Errorf("after the errors: %q", got)
	}
}

// Every command of the table says what it is and can be called by its name.
func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	var check func(cmd *command)
	check = func(cmd *command) {
		switch {
		case seen[cmd.name]:
			t.Errorf("%s stands twice", cmd.name)
		case cmd.name != strings.ToLower(cmd.name), cmd.upper != strings.ToUpper(cmd.name), len(cmd.name) > maxCommand:
			t.Errorf("%s: bad name", cmd.name)
		case cmd.summary == "", cmd.group == "", cmd.since == "", cmd.arity == 0:
			t.Errorf("%s is not described", cmd.name)
		case unsupported[cmd.name] != "":
			t.Errorf("%s is said to be unsupported", cmd.name)
		case cmd.ask != nil && cmd.run != nil, cmd.ask == nil && cmd.run == nil && cmd.subs == nil:
			t.Errorf("%s cannot be executed in one way", cmd.name)
		case cmd.ask != nil && !strings.Contains(cmd.flags, "write") && !strings.Contains(cmd.flags, "readonly"):
			t.Errorf("%s neither reads nor writes", cmd.name)
		}
		seen[cmd.name] = true
		for _, sub := range cmd.subs {
			if !strings.HasPrefix(sub.name, cmd.name+"|") {
				t.Errorf("%s is no subcommand of %s", sub.name, cmd.name)
			}
			check(sub)
		}
	}
	table := newTable(false)
	for _, cmd := range table.list {
		check(cmd)
		if table.find([]byte(cmd.upper)) != cmd {
			t.Errorf("%s is not found", cmd.name)
		}
	}
	for _, name := range []string{"throttle", "sentinel", "evalsha", "multi", "sync", "monitor", "", strings.Repeat("x", 100)} {
		if table.find([]byte(name)) != nil {
			t.Errorf("%q must stay unknown", name)
		}
	}
}
