package resp

// watchCommands are those that people and tools look at a server with.
func watchCommands() []*command {
	const open = "loading stale"
	event := argument{name: "event", kind: "string"}
	ofKey := func(name string, run func(*client, []byte, [][]byte) []byte, summary string) *command {
		return &command{name: "object|" + name, arity: 3, run: run, settles: true, flags: "readonly", firstKey: 2, lastKey: 2, args: keyArg, summary: summary}
	}
	list := []*command{
		{name: "slowlog", arity: -2, summary: "Accepted; no slow log is kept.", subs: []*command{
			{name: "slowlog|get", arity: -2, run: slowlogGet, flags: "admin " + open, summary: "Returns an empty list.",
				args: []argument{{name: "count", kind: "integer", optional: true}}},
			{name: "slowlog|len", arity: 2, run: zero, flags: "admin " + open, summary: "Returns 0."},
			{name: "slowlog|reset", arity: 2, run: done, flags: "admin " + open, summary: "Returns OK."},
		}},
		{name: "latency", arity: -2, summary: "Tells latencies of commands. No events are recorded.", subs: []*command{
			{name: "latency|latest", arity: 2, run: noElements, flags: "admin noscript " + open, summary: "Returns an empty list."},
			{name: "latency|history", arity: 3, run: noElements, flags: "admin noscript " + open, summary: "Returns an empty list.", args: []argument{event}},
			{name: "latency|reset", arity: -2, run: zero, flags: "admin noscript " + open, summary: "Returns 0.",
				args: []argument{{name: "event", kind: "string", optional: true, multiple: true}}},
			{name: "latency|histogram", arity: -2, run: latencyHistogram, settles: true, flags: "admin noscript " + open,
				summary: "Returns how many calls of each command were answered within how many µs.",
				args:    []argument{{name: "command", kind: "string", optional: true, multiple: true}}},
			{name: "latency|doctor", arity: 2, run: latencyDoctor, flags: "admin noscript " + open, summary: "Says where to look."},
			{name: "latency|graph", arity: 3, run: latencyGraph, flags: "admin noscript " + open, summary: "Says that there are no samples.", args: []argument{event}},
		}},
		{name: "memory", arity: -2, summary: "Tells memory of keys.", later: []string{"stats", "malloc-stats", "purge"}, subs: []*command{
			{name: "memory|usage", arity: -3, run: memoryUsage, settles: true, flags: "readonly", firstKey: 2, lastKey: 2,
				summary: "Returns about the bytes that a key takes on this node, null if it holds no state.",
				args:    []argument{keyArg[0], {name: "count", kind: "integer", token: "SAMPLES", optional: true}}},
			{name: "memory|doctor", arity: 2, run: memoryDoctor, flags: "", summary: "Says where to look."},
		}},
		{name: "object", arity: -2, summary: "Tells what tools ask of keys.", subs: []*command{
			ofKey("encoding", objectEncoding, "Returns raw, null if the key holds no state on this node."),
			ofKey("freq", objectFreq, "Accepted; how often a key is used is not counted."),
			ofKey("idletime", objectIdleTime, "Returns 0, null if the key holds no state on this node."),
			ofKey("refcount", objectRefCount, "Returns 1, null if the key holds no state on this node."),
		}},
		{name: "module", arity: -2, summary: "Accepted; there are no modules.", later: []string{"load", "loadex", "unload"}, subs: []*command{
			{name: "module|list", arity: 2, run: noElements, flags: "admin noscript", summary: "Returns an empty list."},
		}},
		{name: "acl", arity: -2, summary: "Tells who the connection is.",
			later: []string{"cat", "deluser", "dryrun", "genpass", "getuser", "list", "load", "log", "save", "setuser", "users"}, subs: []*command{
				{name: "acl|whoami", arity: 2, run: whoAmI, flags: "noscript " + open, summary: "Returns the name of the user."},
			}},
		{name: "lolwut", arity: -1, run: lolwut, flags: "readonly fast", summary: "Returns the version.",
			args: []argument{{name: "version", kind: "integer", token: "VERSION", optional: true}}},
	}
	return grouped("server", list)
}
