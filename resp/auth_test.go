package resp

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// guarded is a server for the default user, whose password is sekret, an
// application that may decide about its own keys, and a person who only reads.
func guarded() Config {
	return Config{Users: []User{
		{Name: "default", Password: sha256.Sum256([]byte("sekret")), May: mayAll},
		{Name: "app", Password: sha256.Sum256([]byte("sekret2")), May: MayLimit, Keys: []string{"app:*", "shared:?"}},
		{Name: "eye", Password: sha256.Sum256([]byte("sekret3")), May: MayRead},
	}}
}

// sessionOf is a session whose failed logins cost no time.
func sessionOf(t *testing.T, cfg Config) *session {
	s := newSession(t, cfg)
	s.srv.failures.pause = func(time.Duration) {}
	return s
}

const (
	noAuth    = "-" + errNoAuth + "\r\n"
	wrongPass = "-" + errWrongPass + "\r\n"
	noPermKey = "-" + errNoPermKey + "\r\n"
)

func noPerm(command string) string {
	return "-NOPERM this user has no permissions to run the '" + command + "' command\r\n"
}

func TestAuthentication(t *testing.T) {
	for _, tc := range []struct {
		name  string
		calls [][]string // each with its reply, or the beginning of it before …
	}{
		{"nothing before a password", [][]string{
			{"PING", noAuth}, {"INFO", noAuth}, {"COMMAND", noAuth}, {"CL.THROTTLE", "k", "1", "1", "60", noAuth},
			{"CLIENT", "SETNAME", "x", noAuth}, {"SELECT", "1", noAuth}, {"RL.TAKEALL", "1", "k", "1/1m", noAuth}, {"ECHO", "x", noAuth}}},
		{"what is no command is said before", [][]string{
			{"FOO", "bar", "-ERR unknown command 'FOO', with args beginning with: 'bar' \r\n"},
			{"ECHO", "-ERR wrong number of arguments for 'echo' command\r\n"}}},
		{"password of the default user", [][]string{{"AUTH", "sekret", "+OK\r\n"}, {"PING", "+PONG\r\n"}, {"FLUSHALL", "+OK\r\n"}}},
		{"default by name", [][]string{{"AUTH", "default", "sekret", "+OK\r\n"}, {"PING", "+PONG\r\n"}}},
		{"wrong password", [][]string{{"AUTH", "sekre", wrongPass}, {"PING", noAuth}, {"AUTH", "", wrongPass}, {"AUTH", "sekret", "+OK\r\n"}}},
		{"another's password", [][]string{{"AUTH", "app", "sekret", wrongPass}, {"AUTH", "sekret2", wrongPass}, {"PING", noAuth}}},
		{"unknown user", [][]string{{"AUTH", "nobody", "sekret", wrongPass}, {"AUTH", "nobody", "", wrongPass}}},
		{"names are exact", [][]string{{"AUTH", "APP", "sekret2", wrongPass}, {"AUTH", "app", "sekret2", "+OK\r\n"}}},
		{"a failure leaves who one was", [][]string{{"AUTH", "app", "sekret2", "+OK\r\n"}, {"AUTH", "eye", "x", wrongPass}, {"RL.TAKE", "app:1", "1/1m", "*…"}}},
		{"too many arguments", [][]string{{"AUTH", "a", "b", "c", "-ERR syntax error\r\n"}}},
		{"HELLO without", [][]string{{"HELLO", "3", "-" + errHelloNoAuth + "\r\n"}, {"PING", noAuth}, {"HELLO", "-" + errHelloNoAuth + "\r\n"}}},
		{"HELLO with", [][]string{{"HELLO", "3", "AUTH", "app", "sekret2", "SETNAME", "x", "%7\r\n…"}, {"PING", "+PONG\r\n"}, {"CLIENT", "GETNAME", "$1\r\nx\r\n"}}},
		{"HELLO with a wrong one", [][]string{{"HELLO", "3", "SETNAME", "x", "AUTH", "app", "no", wrongPass}, {"PING", noAuth}, {"AUTH", "sekret", "+OK\r\n"}, {"CLIENT", "GETNAME", "$-1\r\n"}}},
		{"HELLO with a wrong option behind", [][]string{{"HELLO", "3", "AUTH", "app", "sekret2", "FOO", "-ERR Syntax…"}, {"PING", noAuth}}},
		{"HELLO with another version", [][]string{{"HELLO", "4", "AUTH", "app", "sekret2", "-NOPROTO unsupported protocol version\r\n"}}},
		{"RESET forgets", [][]string{{"AUTH", "sekret", "+OK\r\n"}, {"RESET", "+RESET\r\n"}, {"PING", noAuth}}},
		{"QUIT before", [][]string{{"QUIT", "+OK\r\n"}}},
		{"an application", [][]string{{"AUTH", "app", "sekret2", "+OK\r\n"},
			{"CL.THROTTLE", "app:1", "1", "1", "60", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n"}, {"cl.throttle", "other", "1", "1", "60", noPermKey},
			{"RL.TAKE", "shared:a", "log:3/10m", "*…"}, {"RL.TAKE", "shared:ab", "log:3/10m", noPermKey},
			{"RL.TAKEALL", "2", "app:1", "1/1m", "app:2", "1/1m", "*…"}, {"RL.TAKEALL", "2", "app:1", "1/1m", "xapp:2", "1/1m", noPermKey},
			{"RL.PEEK", "app:1", "1/1m", "*…"}, {"RL.PEEK", "b", "1/1m", noPermKey}, {"RL.REFUND", "b", "1/1m", "1", noPermKey},
			{"DEL", "app:1", "b", noPermKey}, {"DEL", "app:1", ":1\r\n"}, {"TTL", "app:1", ":-2\r\n"}, {"TTL", "b", noPermKey},
			{"MEMORY", "USAGE", "b", noPermKey}, {"MEMORY", "USAGE", "app:9", "$-1\r\n"}, {"OBJECT", "FREQ", "b", noPermKey}, {"CLIENT", "KILL", "ID", "7", noPerm("client|kill")},
			{"CLUSTER", "INFO", "-ERR This instance has cluster support disabled\r\n"},
			{"SCAN", "0", noPerm("scan")}, {"FLUSHDB", noPerm("flushdb")}, {"FLUSHALL", noPerm("flushall")},
			{"RL.CLUSTER", "NODES", noPerm("rl.cluster|nodes")}, {"RL.CLUSTER", "LEAVE", noPerm("rl.cluster|leave")},
			{"RL.SNAPSHOT", "SAVE", noPerm("rl.snapshot|save")}, {"CONFIG", "GET", "*", noPerm("config|get")}, {"CLIENT", "LIST", noPerm("client|list")},
			{"INFO", "$…"}, {"ROLE", "*…"}, {"COMMAND", "COUNT", ":…"}, {"CLIENT", "ID", ":1\r\n"}, {"SELECT", "3", "+OK\r\n"},
			{"RL.TAKEALL", "x", "b", "1/1m", "-ERR …"}}},
		{"a person who reads", [][]string{{"AUTH", "eye", "sekret3", "+OK\r\n"},
			{"CL.THROTTLE", "k", "1", "1", "60", noPerm("cl.throttle")}, {"RL.TAKE", "k", "1/1m", "PEEK", noPerm("rl.take")}, {"DEL", "k", noPerm("del")},
			{"RL.PEEK", "k", "1/1m", "*…"}, {"RL.LIST", "k", "*…"}, {"EXISTS", "k", ":0\r\n"}, {"SCAN", "0", "*…"}, {"DBSIZE", ":0\r\n"},
			{"RL.CLUSTER", "NODES", "*…"}, {"RL.CLUSTER", "TRANSFER", noPerm("rl.cluster|transfer")}, {"CONFIG", "GET", "port", "*…"}, {"FLUSHDB", noPerm("flushdb")}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := sessionOf(t, guarded())
			for _, call := range tc.calls {
				args, want := call[:len(call)-1], call[len(call)-1]
				got := s.do(args...)
				if begin, open := strings.CutSuffix(want, "…"); got != want && (!open || !strings.HasPrefix(got, begin)) {
					t.Errorf("%q: got %q, want %q", args, got, want)
				}
			}
		})
	}
}

// Without a default user a password alone is wrong, and named users come in.
func TestOnlyNamedUsers(t *testing.T) {
	s := sessionOf(t, Config{Users: guarded().Users[1:]})
	for _, tc := range [][2]string{{"AUTH sekret", wrongPass}, {"AUTH default sekret", wrongPass}, {"AUTH default ", wrongPass}, {"AUTH app sekret2", "+OK\r\n"}} {
		if got := s.do(strings.Split(tc[0], " ")...); got != tc[1] {
			t.Errorf("%q: %q", tc[0], got)
		}
	}
}

func TestScanShowsTheKeysOfItsUser(t *testing.T) {
	cfg := guarded()
	cfg.Users[2].Keys = []string{"app:*"}
	s := sessionOf(t, cfg)
	s.do("AUTH", "sekret")
	for _, k := range []string{"app:1", "b", "app:2"} {
		s.do("CL.THROTTLE", k, "1", "1", "60")
	}
	s.do("AUTH", "eye", "sekret3")
	if got, want := s.do("SCAN", "0"), "*2\r\n$1\r\n0\r\n*2\r\n$5\r\napp:1\r\n$5\r\napp:2\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A pipeline that begins with the password is one chunk like any other, and what it
// may send grows within it.
func TestPasswordWithinAPipeline(t *testing.T) {
	s := sessionOf(t, guarded())
	long := strings.Repeat("x", strictArgBytes+1)
	got, err := s.feed(append(commandBytes("AUTH", "sekret"), commandBytes("ECHO", long)...))
	if want := "+OK\r\n$" + fmt.Sprint(len(long)) + "\r\n" + long + "\r\n"; got != want || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	got, err = s.feed(append(commandBytes("RESET"), commandBytes("ECHO", long)...))
	if want := "+RESET\r\n-ERR Protocol error: unauthenticated bulk length\r\n"; got != want || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLittleIsAcceptedBeforeAPassword(t *testing.T) {
	_, addr := listen(t, guarded(), newFakeLimiter())
	for in, want := range map[string]string{
		"*11\r\n":                                   "-ERR Protocol error: unauthenticated multibulk length\r\n",
		"*2\r\n$4\r\nPING\r\n$16385\r\n":            "-ERR Protocol error: unauthenticated bulk length\r\n",
		"PING\r\n*11\r\n":                           noAuth + "-ERR Protocol error: unauthenticated multibulk length\r\n",
		"AUTH \"sekret\"\r\nPING\r\nQUIT\r\n":       "+OK\r\n+PONG\r\n+OK\r\n", // as eredis sends it
		"auth app \"sek\\x72et2\"\r\nQUIT\r\n":      "+OK\r\n+OK\r\n",
		"*2\r\n$4\r\nAUTH\r\n$-1\r\n":               "-ERR Protocol error: invalid bulk length\r\n",
		"*1\r\n$9223372036854775807\r\n":            "-ERR Protocol error: unauthenticated bulk length\r\n",
		strings.Repeat("x", 64<<10+1) + "\r\n":      "-ERR Protocol error: too big inline request\r\n",
		"*10\r\n" + strings.Repeat("$0\r\n\r\n", 9): "",
	} {
		c := dial(t, addr)
		io.WriteString(c, in)
		c.(interface{ CloseWrite() error }).CloseWrite()
		expectClosed(t, c, want)
	}
}

func TestFailuresCostTime(t *testing.T) {
	now := time.Unix(0, 0)
	var paused []time.Duration
	f := failures{now: func() time.Time { return now }, pause: func(d time.Duration) { paused = append(paused, d) }, of: map[netip.Addr]failure{}}
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for range 7 {
		f.wait(a)
	}
	f.wait(b)
	now = now.Add(forgiveAfter)
	f.wait(a)
	want := fmt.Sprint([]time.Duration{50e6, 100e6, 200e6, 400e6, 800e6, 1e9, 1e9, 50e6, 50e6})
	if got := fmt.Sprint(paused); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// However many addresses fail, a bounded number is remembered, and those that are not
// wait longest.
func TestFailuresAreBounded(t *testing.T) {
	now, last := time.Unix(0, 0), time.Duration(0)
	f := failures{now: func() time.Time { return now }, pause: func(d time.Duration) { last = d }, of: map[netip.Addr]failure{}}
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for i := range maxFailing {
		f.wait(address(i))
	}
	if f.wait(address(maxFailing)); last != maxPenalty || len(f.of) != maxFailing {
		t.Errorf("waited %v with %d remembered", last, len(f.of))
	}
	now = now.Add(forgiveAfter)
	if f.wait(address(maxFailing)); last != minPenalty || len(f.of) != 1 {
		t.Errorf("waited %v with %d remembered", last, len(f.of))
	}
}

// While as many wait as may, whoever fails is told so and closed, and whoever gets it
// right comes in.
func TestTooManyGuessers(t *testing.T) {
	s, addr := listen(t, guarded(), newFakeLimiter())
	gate := make(chan struct{})
	s.failures.pause = func(time.Duration) { <-gate }
	defer close(gate)
	for range maxSlowed {
		io.WriteString(dial(t, addr), "PING\r\nAUTH no\r\n")
	}
	eventually(t, "all wait", func() bool {
		s.failures.mu.Lock()
		defer s.failures.mu.Unlock()
		return s.failures.waiting == maxSlowed
	})
	c := dial(t, addr)
	io.WriteString(c, "PING\r\nAUTH no\r\nPING\r\n")
	expectClosed(t, c, noAuth+wrongPass)
	c = dial(t, addr)
	io.WriteString(c, "AUTH sekret\r\nPING\r\n")
	expect(t, c, "+OK\r\n+PONG\r\n")
}
