package resp

import (
	"regexp"
	"strings"
)

// password is that of the default user of both, where they want one.
const password = "sekret"

// difference is an answer that is not that of Redis 7.0, on purpose. What is sent is
// either requests, a line each, which are cases of the test, or a pattern that finds
// cases that the grammar draws.
type difference struct {
	what string
	why  string
	re   *regexp.Regexp
	sent [][]byte
}

var differences = []difference{
	lines("limitd's settings and state are its own",
		"CONFIG GET appendonly", "CONFIG GET *", "CLIENT INFO", "CLIENT LIST", "INFO", "INFO server", "ROLE", "WAIT 0 0", "LATENCY HISTOGRAM", "TIME"),
	lines("limitd's commands are its own, and so is what is told about them",
		"COMMAND", "COMMAND COUNT", "COMMAND LIST", "COMMAND INFO ping", "COMMAND INFO ttl", "COMMAND DOCS ping", "COMMAND GETKEYS CL.THROTTLE a 1 1 1"),
	found(`(?s)^\*2\r\n\$\d+\r\n[A-Z]+\r\n\$4\r\nHELP\r\n$`, "the help tells limitd's own subcommands"),
	lines("these came with Redis 7.2 and 7.4, and client libraries send them",
		"CLIENT SETINFO LIB-NAME x", "CLIENT SETINFO LIB-VER 1", "CLIENT NO-TOUCH ON", "CLIENT KILL MAXAGE 1000"),
	lines("limitd does not have the command; a client that probes for it finds the text of Redis for unknown commands",
		"GET a", "STRLEN a", "HGETALL a", "MULTI", "EXEC", "DISCARD", "WATCH a", "EVAL x 0", "EVALSHA x 0", "SCRIPT LOAD x", "KEYS *", "RANDOMKEY", "EXPIRE a 1",
		"COMMAND GETKEYS GET a"),
	lines("limitd does not have the command, and says what to use instead",
		"DEBUG SLEEP 0", "MONITOR", "SHUTDOWN ABORT", "REPLICAOF NO ONE", "SLAVEOF NO ONE", "FAILOVER ABORT"),
	lines("limitd does not have the subcommand, and says so",
		"CLIENT PAUSE x", "CLIENT UNPAUSE", "CLIENT UNBLOCK 1", "CONFIG SET maxclients 100", "CONFIG RESETSTAT", "MEMORY STATS", "MEMORY MALLOC-STATS", "MEMORY PURGE",
		"ACL LIST", "ACL USERS", "ACL CAT", "MODULE LOAD x"),
	lines("there is no other client that could be told of what this one has read", "CLIENT TRACKING ON REDIRECT 0", "CLIENT TRACKING ON REDIRECT 1"),
	lines("texts that speak of the server", "MEMORY DOCTOR", "LATENCY DOCTOR", "LOLWUT", "LOLWUT VERSION 1"),
	lines("every CLUSTER command says the same while cluster mode is off", "CLUSTER nosuch"),
	found(`^\*\d+\r\n\$4\r\nSCAN\r\n\$2\r\n-1\r\n|^(\*\d\r\n\$5\r\nHELLO\r\n\$1\r\n[23]\r\n)\*2\r\n\$4\r\nSCAN\r\n\$2\r\n-1\r\n`, "a cursor below 0 is an error, in Redis it is a large one"),
	bytesOf("after an error of HELLO nothing has changed; Redis keeps the name",
		"HELLO 3 SETNAME n FOO\r\nCLIENT GETNAME\r\n"),
	found(`(?i)^\*7\r\n\$5\r\nhello\r\n\$1\r\n2\r\n\$7\r\nsetname\r\n\$4\r\nAUTH\r\n\$1\r\na\r\n`, "after an error of HELLO nothing has changed; Redis keeps the name"),
	bytesOf("names that clients give themselves are bounded", "CLIENT SETNAME "+strings.Repeat("n", 129)+"\r\n", "HELLO 2 SETNAME "+strings.Repeat("n", 129)+"\r\n"),
	bytesOf("subscriptions are bounded", "SUBSCRIBE "+strings.Join(repeated(maxChannels+1), " ")+"\r\n"),
	bytesOf("control characters are shown as blanks", "\"no\\x01such\" \"\\x00\"\r\n", "CLIENT \"\\x1b[1m\"\r\n"),
	bytesOf("a bound that is a setting is named behind the text of Redis",
		"*1\r\n$9223372036854775807\r\n", "*9000000000000000000\r\n", "*2147483648\r\n", "*1025\r\n", "*1\r\n$65537\r\n",
		strings.Repeat("a ", 1025)+"\r\n"),
	bytesOf("no length has so many digits: the line is not awaited", "*"+strings.Repeat("1", 30), "*1\r\n$"+strings.Repeat("1", 30)),
	bytesOf("what follows an argument must be the end of a line, in Redis it is skipped unseen", "*1\r\n$4\r\nPINGab"),
	found(`^(\*1\r\n\$4\r\nPING\r\n)\*1\r\n\$4\r\n(PIN)?\*2\r\n`, "what follows an argument must be the end of a line, in Redis it is skipped unseen"),
	bytesOf("a request line of HTTP closes the connection without a reply, whatever its method",
		"GET / HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
}

// lockedDifferences are those where both want a password.
var lockedDifferences = []difference{
	lines("limitd does not have the command, and says what to use instead, with or without a password", "SHUTDOWN ABORT"),
}

// lines makes cases of requests without arguments that need quotes.
func lines(why string, requests ...string) difference {
	d := difference{what: strings.Join(requests, ", "), why: why}
	for _, r := range requests {
		d.sent = append(d.sent, commandBytes(strings.Split(r, " ")...))
	}
	return d
}

// bytesOf makes cases of what is sent, byte by byte.
func bytesOf(why string, sent ...string) difference {
	d := difference{what: strings.Join(sent, ", "), why: why}
	for _, in := range sent {
		d.sent = append(d.sent, []byte(in))
	}
	return d
}

// found finds cases of the grammar.
func found(pattern, why string) difference {
	return difference{what: pattern, why: why, re: regexp.MustCompile(pattern)}
}

func (d *difference) matches(in []byte) bool {
	if d.re != nil {
		return d.re.Match(in)
	}
	for _, s := range d.sent {
		if string(s) == string(in) {
			return true
		}
	}
	return false
}
