package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asked is a command that a program sends before it works with a server, and what it
// takes for an answer: a pattern of the whole reply as it is sent.
type asked struct{ command, accepts string }

// stackExchange is what StackExchange.Redis sends: the handshake in RESP2 or, with
// HELLO, in RESP3, and what it finds the kind of server by.
var stackExchange = []asked{
	{"AUTH default x", `\+OK\r\n`},
	{"HELLO 3 AUTH default x SETNAME app", `%7\r\n\$6\r\nserver\r\n\$5\r\nredis\r\n(?s:.*)`},
	{"CLIENT SETNAME app", `\+OK\r\n`},
	{"CLIENT SETINFO LIB-NAME SE.Redis", `\+OK\r\n`},
	{"CLIENT SETINFO LIB-VER 2.8.0", `\+OK\r\n`},
	{"CLIENT ID", `:\d+\r\n`},
	{"CONFIG GET timeout", `%1\r\n\$7\r\ntimeout\r\n\$1\r\n0\r\n`},
	{"CONFIG GET slave-read-only", `%1\r\n\$15\r\nslave-read-only\r\n\$2\r\nno\r\n`},
	{"CONFIG GET replica-read-only", `%1\r\n\$17\r\nreplica-read-only\r\n\$2\r\nno\r\n`},
	{"CONFIG GET databases", `%1\r\n\$9\r\ndatabases\r\n\$2\r\n16\r\n`},
	{"SENTINEL MASTERS", `-ERR unknown command 'SENTINEL', with args beginning with: 'MASTERS' \r\n`},
	{"INFO replication", `=\d+\r\ntxt:# Replication\r\nrole:master\r\n(?s:.*)`},
	{"INFO server", `=\d+\r\ntxt:# Server\r\nredis_version:7\.\d+\.\d+\r\n(?s:.*)\r\nredis_mode:standalone\r\n(?s:.*)`},
	{"CLUSTER NODES", `-ERR This instance has cluster support disabled\r\n`},
	{"GET __Booksleeve_TieBreak", `-ERR unknown command 'GET', with args beginning with: '__Booksleeve_TieBreak' \r\n`},
	{"ECHO 0123456789abcdef", `\$16\r\n0123456789abcdef\r\n`},
	{"PING", `\+PONG\r\n`},
	// The second connection, and how it leaves.
	{"SUBSCRIBE __Booksleeve_MasterChanged", `>3\r\n\$9\r\nsubscribe\r\n\$26\r\n__Booksleeve_MasterChanged\r\n:1\r\n`},
	{"PING", `\+PONG\r\n`},
	{"UNSUBSCRIBE __Booksleeve_MasterChanged", `>3\r\n\$11\r\nunsubscribe\r\n\$26\r\n__Booksleeve_MasterChanged\r\n:0\r\n`},
	{"QUIT", `\+OK\r\n`},
}

// redisInsight is what RedisInsight sends: how it finds the kind of server, its overview,
// and its browser.
var redisInsight = []asked{
	{"CLIENT SETNAME redisinsight", `\+OK\r\n`},
	{"INFO", `\$\d+\r\n(?s:.*)\r\nuptime_in_seconds:\d+\r\n(?s:.*)\r\nconnected_clients:\d+\r\n(?s:.*)\r\nused_memory:\d+\r\n(?s:.*)` +
		`\r\ninstantaneous_ops_per_sec:\d+\r\n(?s:.*)\r\ninstantaneous_input_kbps:\d+\.\d\d\r\ninstantaneous_output_kbps:\d+\.\d\d\r\n(?s:.*)` +
		`\r\nkeyspace_hits:0\r\nkeyspace_misses:0\r\n(?s:.*)\r\nrole:master\r\n(?s:.*)\r\nused_cpu_sys:\d+\.\d+\r\nused_cpu_user:\d+\.\d+\r\n(?s:.*)` +
		`\r\ncluster_enabled:0\r\n(?s:.*)# Keyspace\r\ndb0:keys=\d+,expires=\d+,avg_ttl=\d+\r\n\r\n`},
	{"SENTINEL MASTERS", `-ERR unknown command 'SENTINEL'(?s:.*)`},
	{"CLUSTER INFO", `-ERR This instance has cluster support disabled\r\n`},
	{"MODULE LIST", `\*0\r\n`},
	{"COMMAND INFO ft.info json.get ts.info", `\*3\r\n\$-1\r\n\$-1\r\n\$-1\r\n`},
	{"CONFIG GET databases", `\*2\r\n\$9\r\ndatabases\r\n\$2\r\n16\r\n`},
	{"DBSIZE", `:2\d\r\n`},
	{"SCAN 0 MATCH * COUNT 200", `\*2\r\n\$1\r\n0\r\n\*2\d\r\n(\$\d+\r\n[a-z0-9:]+\r\n)+`},
	{"TYPE user:1", `\+limit\r\n`},
	{"TTL user:1", `:[1-9]\d*\r\n`},
	{"MEMORY USAGE user:1 SAMPLES 0", `:[1-9]\d*\r\n`},
	{"MEMORY USAGE nosuch SAMPLES 0", `\$-1\r\n`},
	{"OBJECT ENCODING user:1", `\$3\r\nraw\r\n`},
	{"SLOWLOG GET 50", `\*0\r\n`},
	{"SLOWLOG LEN", `:0\r\n`},
	{"CONFIG GET slowlog-max-len", `\*2\r\n\$15\r\nslowlog-max-len\r\n\$1\r\n0\r\n`},
	{"CLIENT LIST", `\$\d+\r\n(id=\d+ addr=\S+ laddr=\S+ name=\S* age=\d+ idle=\d+ flags=\S+ db=\d+ [^\n]* cmd=\S+ user=\S+ [^\n]*\n)+\r\n`},
	{"LATENCY LATEST", `\*0\r\n`},
	{"PUBSUB CHANNELS", `\*0\r\n`},
	{"PSUBSCRIBE *", `\*3\r\n\$10\r\npsubscribe\r\n\$1\r\n\*\r\n:1\r\n`},
	{"PUNSUBSCRIBE *", `\*3\r\n\$12\r\npunsubscribe\r\n\$1\r\n\*\r\n:0\r\n`},
	{"ACL WHOAMI", `\$7\r\ndefault\r\n`},
	{"MEMORY DOCTOR", `\$\d+\r\n[^\r]+\r\n`},
}

// probe sends the commands and checks each reply.
func probe(t *testing.T, address string, list []asked) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	replies := bufio.NewReader(c)
	for _, a := range list {
		var b strings.Builder
		words := strings.Fields(a.command)
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
		if _, err := c.Write([]byte(b.String())); err != nil {
			t.Fatalf("%s: %v", a.command, err)
		}
		got, err := rawReply(replies)
		if err != nil {
			t.Fatalf("%s: %v behind %q", a.command, err, got)
		}
		if !regexp.MustCompile(`^` + a.accepts + `$`).MatchString(got) {
			t.Errorf("%s is answered %q, and only %s is accepted", a.command, got, a.accepts)
		}
	}
}

// rawReply reads one reply as it is sent.
func rawReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	switch line[0] {
	case '+', '-', ':', '_', ',', '#':
		return line, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil {
		return line, err
	}
	switch line[0] {
	case '$', '=':
		b := make([]byte, max(0, n+2))
		if n < 0 {
			b = nil
		}
		_, err := io.ReadFull(r, b)
		return line + string(b), err
	case '%':
		n *= 2
	}
	all := line
	for range n {
		part, err := rawReply(r)
		if all += part; err != nil {
			return all, err
		}
	}
	return all, nil
}
