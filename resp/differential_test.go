package resp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Handshakes, errors, and everything else that does not depend on what limitd is for
// has the shapes and texts of Redis. So the same bytes go to a redis-server 7.0, and
// each difference that is meant stands in a table (differences_test.go) with its reason.

const reference = "7.0."

func TestAnswersAsRedisDoes(t *testing.T) {
	redis := redisServer(t)
	_, ours := listen(t, Config{}, newFakeLimiter())
	both := knownTo(t, redis, nil)
	compare(t, redis, ours, differentialCases(both), differences, 700)
}

// The same where nobody may do much before the password.
func TestAnswersAsRedisDoesWithAPassword(t *testing.T) {
	redis := redisServer(t, "--requirepass", password)
	s, ours := listen(t, Config{Users: []User{{Name: defaultUser, Password: sha256.Sum256([]byte(password)), May: mayAll}}}, newFakeLimiter())
	s.failures.pause = func(time.Duration) {}
	both := knownTo(t, redis, commandBytes("AUTH", password))
	compare(t, redis, ours, lockedCases(both), lockedDifferences, 300)
}

// compare sends each case to both.
func compare(t *testing.T, redis, ours string, cases [][]byte, differences []difference, atLeast int) {
	t.Helper()
	if len(cases) < atLeast {
		t.Fatalf("only %d cases", len(cases))
	}
	matched := make([]int, len(differences))
	failed := 0
	for _, in := range cases {
		want, got := plain(exchange(t, redis, in)), plain(exchange(t, ours, in))
		meant := -1
		for i, d := range differences {
			if meant < 0 && d.matches(in) {
				meant = i
				matched[i]++
			}
		}
		switch {
		case meant < 0 && got != want:
			if failed++; failed <= 60 {
				t.Errorf("%q\n redis: %q\nlimitd: %q", in, want, got)
			}
		case meant >= 0 && got == want:
			t.Errorf("%q: no difference any more, though the table has one: %s\nboth: %q", in, differences[meant].why, got)
		}
	}
	for i, d := range differences {
		if matched[i] == 0 {
			t.Errorf("the table has a difference that no case shows: %s (%s)", d.what, d.why)
		}
	}
	t.Logf("%d cases, %d of them differ as meant, for %d reasons; %d fail", len(cases), sum(matched), len(differences), failed)
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// redisServer starts the reference until the test ends.
func redisServer(t *testing.T, settings ...string) (addr string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("redis-server is missing, and the test needs it: apt-get install redis-server (%v)", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = ln.Addr().String()
	ln.Close()
	_, port, _ := strings.Cut(addr, ":")
	var log bytes.Buffer
	settings = append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--slowlog-log-slower-than", "-1"}, settings...)
	cmd := exec.Command(path, settings...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("redis-server printed:\n%s", log.String())
		}
	})
	eventually(t, "redis-server answers", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
	if info := exchange(t, addr, append(commandBytes("AUTH", password), commandBytes("INFO", "server")...)); !strings.Contains(info, "\r\nredis_version:"+reference) {
		t.Fatalf("the reference is Redis %sx, and %s is another: %.200q", reference, path, info)
	}
	return addr
}

// exchange sends the bytes and the end, and returns what comes until the other end.
func exchange(t *testing.T, addr string, in []byte) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	c.Write(in) // may fail when the server has had enough
	c.(*net.TCPConn).CloseWrite()
	out, err := io.ReadAll(c)
	if t, ok := err.(net.Error); ok && t.Timeout() {
		return string(out) + "<the connection stays open>"
	}
	return string(out)
}

var ids = regexp.MustCompile(`(\$2\r\nid\r\n|\$9\r\nclient-id\r\n):\d+`)
var versions = regexp.MustCompile(`\$\d+\r\n(` + regexp.QuoteMeta(reference) + `\d+|` + regexp.QuoteMeta(redisVersion) + `)\r\n`)

// plain is a reply without what must differ: ids of connections, the version, and the
// one text that the version has given another word.
func plain(reply string) string {
	reply = strings.ReplaceAll(reply, "the HELLO <proto> AUTH <user>", "the HELLO AUTH <user>")
	reply = ids.ReplaceAllString(reply, "${1}:ID")
	return versions.ReplaceAllString(reply, "$$VERSION\r\n")
}

// knownTo are limitd's commands and subcommands that the reference has too, which is
// asked behind hello.
func knownTo(t *testing.T, redis string, hello []byte) (list []*command) {
	t.Helper()
	for _, cmd := range newTable(false).all {
		out := exchange(t, redis, append(hello[:len(hello):len(hello)], commandBytes("COMMAND", "INFO", cmd.name)...))
		if strings.HasPrefix(strings.TrimPrefix(out, "+OK\r\n"), "*1\r\n*") {
			list = append(list, cmd)
		}
	}
	if len(list) < 60 {
		t.Fatalf("only %d commands are known to both", len(list))
	}
	return list
}

// words are the arguments that name a command.
func (cmd *command) words() []string { return strings.Split(cmd.upper, "|") }

// repeated is n arguments.
func repeated(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("a", i))
	}
	return list
}
