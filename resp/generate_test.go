package resp

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
)

// The cases of the differential test: written ones, and ones that are drawn from a
// grammar with a fixed seed, so that they are the same each time.

// caseList collects cases without repetition.
type caseList struct {
	list [][]byte
	seen map[string]bool
}

func (l *caseList) add(parts ...[]byte) {
	b := slices.Concat(parts...)
	if l.seen[string(b)] {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[string(b)] = true
	l.list = append(l.list, b)
}

// draw adds n cases.
func (l *caseList) draw(n int, one func() []byte) {
	for range n {
		l.add(one())
	}
}

// arity adds each command with too few and too many arguments.
func (l *caseList) arity(both []*command) {
	for _, cmd := range both {
		w := cmd.words()
		if n := abs(cmd.arity); n > len(w) {
			l.add(commandBytes(append(w, repeated(n-1-len(w))...)...))
		}
		if cmd.arity > 0 {
			l.add(commandBytes(append(w, repeated(cmd.arity+1-len(w))...)...))
		}
	}
}

func (l *caseList) written(differences []difference) {
	for _, d := range differences {
		for _, in := range d.sent {
			l.add(in)
		}
	}
}

// differentialCases are what is sent, each on a connection of its own.
func differentialCases(both []*command) [][]byte {
	g := &grammar{rand.New(rand.NewPCG(1, 2))}
	var l caseList
	l.arity(both)
	for _, cmd := range both {
		if cmd.subs != nil {
			l.add(commandBytes(cmd.upper, "nosuch"))
			l.add(commandBytes(cmd.upper, g.binary()))
			l.add(commandBytes(cmd.upper, "HELP"))
		}
	}
	l.written(differences)
	l.draw(80, func() []byte {
		return slices.Concat(g.hello(), commandBytes("CLIENT", "GETNAME"), commandBytes("PING"))
	})
	l.draw(60, func() []byte { return g.sequence(2+g.IntN(5), g.connection) })
	l.draw(60, func() []byte { return g.sequence(3+g.IntN(5), g.replyMode) })
	l.draw(80, func() []byte {
		return slices.Concat(g.version(), g.sequence(2+g.IntN(7), g.subscription([]string{"a", "b"}[:1+g.IntN(2)])))
	})
	l.draw(80, func() []byte { return slices.Concat(g.version(), g.sequence(2+g.IntN(6), g.track)) })
	l.draw(60, g.unknown)
	l.draw(60, g.inline)
	l.draw(60, g.key)
	l.draw(40, g.broken)
	return l.list
}

// lockedCases are what is sent where both want a password.
func lockedCases(both []*command) [][]byte {
	g := &grammar{rand.New(rand.NewPCG(3, 4))}
	var l caseList
	l.arity(both)
	l.written(lockedDifferences)
	right := func() []byte {
		return commandBytes(strings.Split(g.of("AUTH "+password, "AUTH default "+password, "HELLO 3 AUTH default "+password, "HELLO 2 AUTH default "+password+" SETNAME n",
			"AUTH default x", "AUTH x"), " ")...)
	}
	l.draw(80, func() []byte { return slices.Concat(g.hello(), commandBytes("CLIENT", "GETNAME")) })
	l.draw(80, func() []byte { return g.sequence(2+g.IntN(5), g.connection) })
	l.draw(60, func() []byte {
		return slices.Concat(g.connection(), right(), g.connection(), g.subscription([]string{"a"})())
	})
	l.draw(30, func() []byte { return slices.Concat(right(), commandBytes("RESET"), g.connection(), g.track()) })
	l.draw(30, g.unknown)
	l.draw(30, g.key)
	for _, in := range []string{
		"*10\r\n", "*11\r\n", "*1\r\n$16384\r\n", "*1\r\n$16385\r\n", "*1\r\n$-1\r\n", "*x\r\n", "PING\r\n", "a b c d e f g h i j k l m\r\n", "CLIENT\r\n", "\r\n",
	} {
		l.add([]byte(in))
	}
	return l.list
}

func abs(n int) int { return max(n, -n) }

// grammar draws requests.
type grammar struct{ *rand.Rand }

func (g *grammar) of(list ...string) string { return list[g.IntN(len(list))] }

func (g *grammar) sequence(n int, one func() []byte) (out []byte) {
	for range n {
		out = append(out, one()...)
	}
	return out
}

// anyCase writes a name as clients might.
func (g *grammar) anyCase(s string) string {
	b := []byte(strings.ToLower(s))
	for i := range b {
		if g.IntN(2) == 0 {
			b[i] = strings.ToUpper(string(b[i]))[0]
		}
	}
	return string(b)
}

func (g *grammar) version() []byte {
	switch g.IntN(3) {
	case 0:
		return commandBytes("HELLO", "3")
	case 1:
		return commandBytes("HELLO", "2")
	}
	return nil
}

// hello is HELLO in all its forms, most of them wrong.
func (g *grammar) hello() []byte {
	args := []string{g.anyCase("HELLO"), g.of("2", "3", "3", "2", "1", "4", "x", "", "-2", "2.0", "9223372036854775807", "9223372036854775808")}
	for range g.IntN(4) {
		args = append(args, strings.Split(g.of(
			"AUTH default x", "AUTH default ", "auth nobody x", "AUTH default", "AUTH", "SETNAME n", "setname n1", "SETNAME", "SETNAME a\tb", "SETNAME é",
			"FOO", "FOO bar", "AUTH a b c"), " ")...)
	}
	return commandBytes(args...)
}

// connection is a command about the connection.
func (g *grammar) connection() []byte {
	return commandBytes(strings.Split(g.of(
		"PING", "PING a", "PING a b", "ECHO a", "ECHO", "SELECT 0", "SELECT 15", "SELECT 16", "SELECT -1", "SELECT x", "SELECT 1.0", "SELECT ",
		"SELECT 99999999999999999999", "QUIT", "QUIT now", "RESET", "RESET now", "AUTH x", "AUTH default x", "AUTH nobody x", "AUTH a b c", "AUTH",
		"CLIENT GETNAME", "CLIENT SETNAME n", "CLIENT SETNAME a\tb", "CLIENT SETNAME ", "CLIENT NO-EVICT on", "CLIENT NO-EVICT off", "CLIENT NO-EVICT maybe",
		"CLIENT", "CLIENT nosuch", "CLIENT LIST TYPE nosuch", "CLIENT LIST TYPE", "CLIENT LIST FOO", "CLIENT LIST ID", "CLIENT LIST ID x", "CLIENT LIST ID 0",
		"CLIENT LIST ID 999999999", "CLIENT LIST TYPE pubsub", "CLIENT LIST TYPE master", "CLIENT LIST TYPE replica", "CLIENT LIST ID 999999999 x",
		"CLIENT KILL 1.2.3.4:5", "CLIENT KILL x", "CLIENT KILL ID 0", "CLIENT KILL ID -1", "CLIENT KILL ID x", "CLIENT KILL ID 999999999", "CLIENT KILL TYPE nosuch",
		"CLIENT KILL TYPE pubsub SKIPME no", "CLIENT KILL TYPE slave", "CLIENT KILL USER nobody", "CLIENT KILL SKIPME maybe", "CLIENT KILL SKIPME yes ADDR x",
		"CLIENT KILL ID 999999999 FOO", "CLIENT KILL ID 999999999 LADDR x USER default", "CLIENT KILL FOO bar", "CLIENT REPLY nosuch",
		"COMMAND COUNT x", "COMMAND INFO nosuch", "COMMAND INFO nosuch client|nosuch", "COMMAND DOCS nosuch", "COMMAND nosuch", "COMMAND LIST FILTERBY nosuch x",
		"COMMAND LIST FILTERBY PATTERN nosuch*", "COMMAND LIST FILTERBY", "COMMAND LIST nosuch", "COMMAND LIST FILTERBY MODULE nosuch", "COMMAND LIST FILTERBY ACLCAT nosuch",
		"COMMAND GETKEYS DEL a b", "COMMAND GETKEYS TTL a", "COMMAND GETKEYS TTL a b", "COMMAND GETKEYS PING a", "COMMAND GETKEYS nosuch a", "COMMAND GETKEYS OBJECT FREQ a",
		"COMMAND GETKEYS MEMORY USAGE a SAMPLES 1", "COMMAND GETKEYS PING",
		"CONFIG GET nosuch", "CONFIG GET nosuch nosuch2", "CONFIG GET databases", "CONFIG GET DATABASES data*s", "CONFIG nosuch",
		"SLOWLOG LEN", "SLOWLOG GET", "SLOWLOG GET -2", "SLOWLOG GET x", "SLOWLOG GET 10", "SLOWLOG RESET", "LATENCY LATEST", "LATENCY HISTORY x", "LATENCY RESET", "LATENCY RESET x",
		"LATENCY GRAPH x", "LATENCY HISTOGRAM nosuch", "LATENCY nosuch", "MODULE LIST", "ACL WHOAMI", "ACL nosuch", "LOLWUT VERSION x", "MEMORY nosuch", "WAIT x 0", "WAIT 0 x", "WAIT 0 -1",
		"PUBSUB nosuch", "PUBSUB CHANNELS", "PUBSUB CHANNELS x*", "PUBSUB NUMSUB", "PUBSUB NUMSUB x y", "PUBSUB NUMPAT", "PUBSUB SHARDCHANNELS", "PUBSUB SHARDNUMSUB x", "PUBLISH x y", "SPUBLISH x y",
		"READONLY", "READWRITE", "ASKING", "CLUSTER INFO", "CLUSTER NODES", "SENTINEL MASTERS",
	), " ")...)
}

func (g *grammar) replyMode() []byte {
	return commandBytes(strings.Split(g.of(
		"CLIENT REPLY ON", "CLIENT REPLY OFF", "CLIENT REPLY SKIP", "client reply skip", "CLIENT REPLY nosuch", "CLIENT REPLY",
		"PING", "PING", "ECHO a", "NOSUCH", "SELECT x", "HELLO 3", "HELLO 2", "RESET", "SUBSCRIBE a", "UNSUBSCRIBE a"), " ")...)
}

// subscription is one of the SUBSCRIBE family or what may come between. Without names
// the order of several confirmations is Redis' own affair.
func (g *grammar) subscription(names []string) func() []byte {
	return func() []byte {
		args := []string{g.anyCase(g.of("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"))}
		switch g.IntN(10) {
		case 0, 1:
			return commandBytes(strings.Split(g.of("PING", "PING x", "PING x y", "ECHO x", "NOSUCH", "CLIENT GETNAME", "GETX", "EXISTS k", "HELLO 2", "HELLO 3", "RESET",
				"QUIT", "CLIENT", "SELECT x", "CLIENT REPLY ON", "CLIENT LIST TYPE nosuch", "PUBSUB NUMPAT"), " ")...)
		case 2:
			if len(names) == 1 || g.IntN(2) == 0 && !strings.EqualFold(args[0][:1], "u") && !strings.EqualFold(args[0][1:2], "u") {
				return commandBytes(args...)
			}
		}
		for range 1 + g.IntN(2) {
			args = append(args, g.of(names...))
		}
		return commandBytes(args...)
	}
}

// track is one of CLIENT TRACKING and its kin.
func (g *grammar) track() []byte {
	return commandBytes(strings.Split(g.of(
		"CLIENT TRACKING ON", "CLIENT TRACKING ON", "CLIENT TRACKING OFF", "CLIENT TRACKING maybe", "CLIENT TRACKING ON OPTIN", "CLIENT TRACKING ON OPTOUT",
		"CLIENT TRACKING ON OPTIN OPTOUT", "CLIENT TRACKING ON BCAST", "CLIENT TRACKING ON BCAST PREFIX a PREFIX b", "CLIENT TRACKING ON BCAST PREFIX a PREFIX ab",
		"CLIENT TRACKING ON BCAST PREFIX abc", "CLIENT TRACKING ON PREFIX a", "CLIENT TRACKING ON PREFIX", "CLIENT TRACKING ON BCAST OPTIN", "CLIENT TRACKING ON NOLOOP",
		"CLIENT TRACKING ON FOO", "CLIENT TRACKING OFF FOO", "client tracking on noloop optin", "CLIENT TRACKING ON REDIRECT x",
		"CLIENT CACHING YES", "CLIENT CACHING NO", "CLIENT CACHING maybe", "CLIENT CACHING", "CLIENT GETREDIR", "CLIENT TRACKINGINFO", "CLIENT TRACKINGINFO", "PING", "RESET"), " ")...)
}

// binary is an argument of any bytes but those that C takes for an end.
func (g *grammar) binary() string {
	b := make([]byte, g.IntN(20))
	if g.IntN(4) == 0 {
		b = make([]byte, 100+g.IntN(200))
	}
	for i := range b {
		b[i] = byte(1 + g.IntN(255))
		if g.IntN(2) == 0 {
			b[i] = "abcXYZ '\"\\%{}"[g.IntN(13)]
		}
		if b[i] < ' ' && b[i] != '\r' && b[i] != '\n' || b[i] == 0x7f {
			b[i] = '.' // as the table of differences has it
		}
	}
	return string(b)
}

// unknown is a command that neither server knows.
func (g *grammar) unknown() []byte {
	args := []string{"no" + g.binary()}
	for range g.IntN(6) {
		args = append(args, g.binary())
	}
	return slices.Concat(commandBytes(args...), commandBytes("PING", g.binary()))
}

// inline is a line with quotes and escapes, good ones and bad ones.
func (g *grammar) inline() []byte {
	var b bytes.Buffer
	b.WriteString(g.of("", "", " ", "\t"))
	b.WriteString(g.of("PING", "ECHO", "ping", "\"ECHO\"", "'PING'", "CLIENT SETNAME"))
	for range g.IntN(3) {
		b.WriteString(g.of(" ", "  ", "\t"))
		quote := g.of("", "\"", "'", "\"", "'")
		b.WriteString(quote)
		for range g.IntN(8) {
			b.WriteString(g.of("a", "B", " ", "\\n", "\\r", "\\t", "\\a", "\\b", "\\x41", "\\xfF", "\\xZ1", "\\x", "\\\\", "\\q", "é", "\\'", "\\\"", "$", "*"))
		}
		b.WriteString(quote)
		if g.IntN(10) == 0 {
			b.WriteString(g.of("x", "\"", "'"))
		}
	}
	b.WriteString(g.of("\r\n", "\n", "\r\n"))
	b.WriteString("PING after\r\n")
	return b.Bytes()
}

// key is a command about keys that are not there.
func (g *grammar) key() []byte {
	return slices.Concat(g.version(), commandBytes(strings.Split(g.of(
		"DEL a", "DEL a b a", "UNLINK a", "EXISTS a", "EXISTS a b", "TYPE a", "TTL a", "PTTL a", "DBSIZE", "SCAN 0", "SCAN 0 COUNT 10", "SCAN 0 COUNT 0", "SCAN 0 COUNT x",
		"SCAN 0 MATCH a*", "SCAN 0 MATCH", "SCAN 0 FOO", "SCAN 0 FOO bar", "SCAN x", "SCAN -1", "SCAN 0 TYPE string", "SCAN 0 TYPE", "SCAN 0 COUNT 1 MATCH x TYPE y",
		"FLUSHDB", "FLUSHDB ASYNC", "FLUSHDB SYNC", "FLUSHDB FOO", "FLUSHDB SYNC ASYNC", "FLUSHALL", "FLUSHALL sync", "FLUSHALL FOO",
		"MEMORY USAGE a", "MEMORY USAGE a SAMPLES 5", "MEMORY USAGE a SAMPLES -1", "MEMORY USAGE a SAMPLES x", "MEMORY USAGE a SAMPLES", "MEMORY USAGE a FOO 1",
		"OBJECT ENCODING a", "OBJECT FREQ a", "OBJECT IDLETIME a", "OBJECT REFCOUNT a", "OBJECT nosuch a"), " ")...), commandBytes("PING"))
}

// broken is a request that breaks the protocol, behind one that does not.
func (g *grammar) broken() []byte {
	return slices.Concat(commandBytes("PING"), []byte(g.of(
		"*1\r\n+PING\r\n", "*1\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n:1\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", "*1\r\n\x01\r\n", "*1\r\n$-1\r\n", "*1\r\n$abc\r\n", "*1\r\n$\r\n", "*1\r\n$ 4\r\nPING\r\n",
		"*1\r\n$+4\r\nPING\r\n", "*1\r\n$04\r\nPING\r\n", "*1\r\n$4.0\r\n", "*abc\r\n", "*\r\n", "*-\r\n", "*+1\r\n", "*01\r\n", "* 1\r\n", "*1.0\r\n", "*99999999999999999999x\r\n", "*-1\r\n", "*0\r\n", "*-10\r\n",
		"*0\r\n*0\r\n", "\r\n", "\n", "\r\n\r\n", "   \r\n", "\"\r\n", "'\r\n", "ECHO \"a\"b\r\n", "ECHO 'a\r\n", "ECHO \"a\\\"\r\n", "*1\r\n$4\r\nPIN", "*1\r\n$4\r\n", "*1\r\n$4", "*1\r\n", "*1", "PIN",
		"*3\r\n$4\r\nECHO\r\n$1\r\na\r\n")), commandBytes("PING", g.of("a", "b")))
}
