package resp

import (
	"slices"
	"strings"

	"limitd/limiter"
)

// command is one row of the command table: how it is executed, and what COMMAND
// and its kin tell about it. Exactly one of ask and run is set, or subs; with
// subs, run (if any) is for the name alone.
type command struct {
	name  string // lower case; of a subcommand container|sub
	arity int    // arguments with the name: exactly n, or at least -n
	usage string // the error for wrong arity; "": Redis' text

	ask     func(c *client, args [][]byte) error              // gathers a call, or says what is wrong
	run     func(c *client, dst []byte, args [][]byte) []byte // appends the reply
	settles bool                                              // run sees the effects of the calls before it
	subs    []*command
	later   []string // subcommands whose names are taken

	needs  Permission // see needsOf
	noAuth bool       // open to clients that have not said who they are

	flags    string                       // of COMMAND INFO, blank separated
	lastKey  int                          // 0: no keys; else keys are arguments firstKey to lastKey, -1: to the last
	firstKey int                          // 0: 1
	keysOf   func(args [][]byte) [][]byte // where they are elsewhere; nil: as lastKey says
	group    string
	since    string
	summary  string
	args     []argument

	upper  string // name in upper case
	index  int    // in the table's list of all
	reads  bool   // it has keys and changes none
	pubsub bool   // allowed while subscribed in RESP2
	cost   cost
}

// argument of a command, as COMMAND DOCS tells it.
type argument struct {
	name, kind string // kind: key, integer, string, pattern, pure-token, oneof, block
	token      string
	optional   bool
	multiple   bool
	oneOf      []argument // of a block: its parts
}

// sub is a subcommand's own name.
func (cmd *command) sub() string {
	_, s, _ := strings.Cut(cmd.name, "|")
	return s
}

func (cmd *command) usageError() string {
	if cmd.usage != "" {
		return cmd.usage
	}
	return errArity(cmd.name)
}

// table is the command table of a server.
type table struct {
	list   []*command
	all    []*command // with the subcommands
	byName map[string]*command
	told   [2]rendered // in RESP2 and RESP3
}

// maxCommand is above the length of any command's name.
const maxCommand = 32

// find looks a name up in whatever case; nil if there is no such command.
func (t *table) find(name []byte) *command {
	var buf [maxCommand]byte
	if len(name) > len(buf) {
		return nil
	}
	for i, c := range name {
		buf[i] = lower(c)
	}
	return t.byName[string(buf[:len(name)])]
}

// newTable makes the table; traced says that RL.TRACE is in it.
func newTable(traced bool) *table {
	t := &table{byName: map[string]*command{}}
	for _, list := range [][]*command{limitCommands(), keyCommands(), sessionCommands(), clientCommands(), pubsubCommands(), serverCommands(), watchCommands(), clusterCommands()} {
		t.list = append(t.list, list...)
	}
	if traced {
		t.list = append(t.list, traceCommand())
	}
	for _, cmd := range t.list {
		t.byName[cmd.name] = cmd
		cmd.complete()
		for _, sub := range cmd.subs {
			sub.group, sub.since = cmd.group, cmd.since
			sub.complete()
		}
		if cmd.subs != nil {
			cmd.subs = append(cmd.subs, helpOf(cmd))
		}
		for _, each := range append([]*command{cmd}, cmd.subs...) {
			each.index = len(t.all)
			each.reads = strings.Contains(each.flags, "readonly") && (each.lastKey != 0 || each.keysOf != nil)
			t.all = append(t.all, each)
		}
	}
	return t
}

// complete sets what follows from the rest.
func (cmd *command) complete() {
	cmd.upper = strings.ToUpper(cmd.name)
	cmd.needs, cmd.noAuth = needsOf(cmd), cmd.has("no_auth")
}

// has says that the command has a flag.
func (cmd *command) has(flag string) bool {
	return slices.Contains(strings.Fields(cmd.flags), flag)
}

// keys are the keys that the arguments name; none if the arguments are wrong.
func (cmd *command) keys(args [][]byte) [][]byte {
	switch {
	case cmd.keysOf != nil:
		return cmd.keysOf(args)
	case cmd.lastKey > 0:
		return args[cmd.first() : 1+cmd.lastKey]
	case cmd.lastKey < 0:
		return args[cmd.first():]
	}
	return nil
}

func limitCommands() []*command {
	throttleArgs := []argument{
		{name: "key", kind: "key"}, {name: "max_burst", kind: "integer"}, {name: "count", kind: "integer"},
		{name: "period", kind: "integer"}, {name: "quantity", kind: "integer", optional: true},
	}
	var list []*command
	for _, name := range []string{"cl.throttle", "rl.throttle"} {
		list = append(list, &command{
			name: name, arity: -5, usage: throttleUsage, ask: throttle,
			flags: "write denyoom fast", lastKey: 1, group: "limit", since: "0.1.0", args: throttleArgs,
			summary: "Charges quantity (default 1) to a limit of count per period seconds with a burst of max_burst + 1, if it fits.",
		})
	}
	const limitSummary = "A limit is [algorithm:]limit/period[,option...], as in 100/1m or log:3/10m."
	keyLimit := []argument{{name: "key", kind: "key"}, {name: "limit", kind: "string"}}
	cost := argument{name: "units", kind: "integer", token: "COST", optional: true}
	traced := argument{name: "trace", kind: "pure-token", token: "TRACE", optional: true}
	id := argument{name: "token", kind: "string", token: "ID", optional: true}
	peek := argument{name: "peek", kind: "pure-token", token: "PEEK", optional: true}
	return append(list,
		&command{
			name: "rl.take", arity: -3, ask: takes(false),
			flags: "write denyoom fast", lastKey: 1, group: "limit", since: "0.1.0", args: append(keyLimit[:2:2], cost, peek, id, traced),
			summary: "Charges COST (default 1) to a limit of a key, if it fits. " + limitSummary,
		},
		&command{
			name: "rl.peek", arity: -3, ask: takes(true),
			flags: "readonly fast", lastKey: 1, group: "limit", since: "0.1.0", args: append(keyLimit[:2:2], cost),
			summary: "Says whether COST (default 1) would pass, and what is left, and charges nothing.",
		},
		&command{
			name: "rl.refund", arity: -4, ask: refund,
			flags: "write fast", lastKey: 1, group: "limit", since: "0.1.0", args: append(keyLimit[:2:2], argument{name: "n", kind: "integer"}, id),
			summary: "Gives n units back to a limit of a key, at most what is used.",
		},
		&command{
			name: "rl.takeall", arity: -4, ask: takeAll, keysOf: keysOfTakeAll,
			flags: "write denyoom movablekeys", group: "limit", since: "0.1.0",
			args: []argument{{name: "count", kind: "integer"}, {name: "limit", kind: "block", multiple: true, oneOf: keyLimit},
				{name: "cost", kind: "oneof", optional: true, oneOf: []argument{{name: "units", kind: "integer", token: "COST"}, {name: "units", kind: "integer", token: "COSTS", multiple: true}}}, peek, id, traced},
			summary: "Charges up to 32 limits of any keys if all have room, else none, and says which one denied.",
		},
		&command{
			name: "rl.list", arity: 2, ask: listOf,
			flags: "readonly fast", lastKey: 1, group: "limit", since: "0.1.0", args: keyArg,
			summary: "Returns algorithm, period, what is used and ms to expiry of each limit that a key holds.",
		},
		&command{
			name: "rl.reset", arity: -2, ask: keyed(limiter.Reset, number),
			flags: "write", lastKey: -1, group: "limit", since: "0.1.0", args: keyArgs,
			summary: "Removes all limits of keys, so that they are full again.",
		},
		&command{
			name: "rl.time", arity: 1, run: rlTime, settles: true,
			flags: "readonly fast", group: "limit", since: "0.1.0",
			summary: "Returns cluster time, calendar offset, cluster time minus wall clock (all in ms), term and leader.",
		},
	)
}

var (
	keyArg  = []argument{{name: "key", kind: "key"}}
	keyArgs = []argument{{name: "key", kind: "key", multiple: true}}
)

func keyCommands() []*command {
	flushArgs := []argument{{name: "flush-type", kind: "oneof", optional: true, oneOf: []argument{
		{name: "async", kind: "pure-token", token: "ASYNC"}, {name: "sync", kind: "pure-token", token: "SYNC"}}}}
	list := []*command{
		{name: "del", arity: -2, ask: keyed(limiter.Reset, number), flags: "write", lastKey: -1, args: keyArgs,
			summary: "Removes all limits of keys."},
		{name: "unlink", arity: -2, ask: keyed(limiter.Reset, number), flags: "write fast", lastKey: -1, args: keyArgs,
			summary: "Removes all limits of keys."},
		{name: "exists", arity: -2, ask: keyed(limiter.Exists, number), flags: "readonly fast", lastKey: -1, args: keyArgs,
			summary: "Returns how many of the keys hold state."},
		{name: "type", arity: 2, ask: keyed(limiter.Type, kind), flags: "readonly fast", lastKey: 1, args: keyArg,
			summary: "Returns limit if the key holds state, else none."},
		{name: "ttl", arity: 2, ask: keyed(limiter.TTL, seconds), flags: "readonly fast", lastKey: 1, args: keyArg,
			summary: "Returns the seconds until the key means nothing any more."},
		{name: "pttl", arity: 2, ask: keyed(limiter.TTL, millis), flags: "readonly fast", lastKey: 1, args: keyArg,
			summary: "Returns the milliseconds until the key means nothing any more."},
		{name: "scan", arity: -2, run: scan, settles: true, flags: "readonly", summary: "Iterates over the keys that hold state on this node.",
			args: []argument{{name: "cursor", kind: "integer"}, {name: "pattern", kind: "pattern", token: "MATCH", optional: true},
				{name: "count", kind: "integer", token: "COUNT", optional: true}, {name: "type", kind: "string", token: "TYPE", optional: true}}},
		{name: "dbsize", arity: 1, run: dbsize, settles: true, flags: "readonly fast", summary: "Returns the number of keys that hold state on this node."},
		{name: "flushdb", arity: -1, ask: flush(limiter.Flush), needs: MayAdmin, flags: "write", args: flushArgs, summary: "Removes all limits of the selected namespace."},
		{name: "flushall", arity: -1, ask: flush(limiter.FlushAll), needs: MayAdmin, flags: "write", args: flushArgs, summary: "Removes all limits of all namespaces."},
	}
	return grouped("generic", list)
}

func sessionCommands() []*command {
	const flags = "noscript loading stale fast"
	list := []*command{
		{name: "ping", arity: -1, run: ping, pubsub: true, flags: "fast", summary: "Returns PONG or the message.",
			args: []argument{{name: "message", kind: "string", optional: true}}},
		{name: "echo", arity: 2, run: echo, flags: "fast", summary: "Returns the message.", args: []argument{{name: "message", kind: "string"}}},
		{name: "hello", arity: -1, run: hello, flags: flags + " no_auth", summary: "Selects the protocol version.",
			args: []argument{{name: "protover", kind: "integer", optional: true}, {name: "clientname", kind: "string", token: "SETNAME", optional: true}}},
		{name: "auth", arity: -2, run: auth, flags: flags + " no_auth", summary: "Authenticates the connection.",
			args: []argument{{name: "username", kind: "string", optional: true}, {name: "password", kind: "string"}}},
		{name: "select", arity: 2, run: selectDB, flags: "loading stale fast", summary: "Selects a namespace, 0 to 15.", args: []argument{{name: "index", kind: "integer"}}},
		{name: "quit", arity: -1, run: quit, pubsub: true, flags: flags + " no_auth", summary: "Closes the connection."},
		{name: "reset", arity: 1, run: reset, pubsub: true, flags: flags + " no_auth", summary: "Returns the connection to its beginning."},
	}
	return grouped("connection", list)
}

// grouped sets the group, and that the command is one of Redis.
func grouped(group string, list []*command) []*command {
	for _, cmd := range list {
		cmd.group, cmd.since = group, "0.1.0"
	}
	return list
}
