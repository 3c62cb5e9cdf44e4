package resp

// clientCommands are CLIENT and its subcommands.
func clientCommands() []*command {
	onOff := []argument{{name: "enabled", kind: "oneof", oneOf: []argument{
		{name: "on", kind: "pure-token", token: "ON"}, {name: "off", kind: "pure-token", token: "OFF"}}}}
	const flags = "noscript loading stale fast"
	const admin = "admin noscript loading stale"
	text := func(name, token string) argument {
		return argument{name: name, kind: "string", token: token, optional: token != ""}
	}
	client := &command{name: "client", arity: -2, summary: "Commands about connections.", later: []string{"pause", "unpause", "unblock"}, subs: []*command{
		{name: "client|id", arity: 2, run: clientID, flags: flags, summary: "Returns the id of the connection."},
		{name: "client|getname", arity: 2, run: clientGetName, flags: flags, summary: "Returns the name of the connection."},
		{name: "client|setname", arity: 3, run: clientSetName, flags: flags, summary: "Names the connection.",
			args: []argument{text("connection-name", "")}},
		{name: "client|setinfo", arity: 4, run: clientSetInfo, flags: flags, summary: "Tells the client library's LIB-NAME or LIB-VER.",
			args: []argument{text("attr", ""), text("value", "")}},
		{name: "client|info", arity: 2, run: clientInfo, flags: flags, summary: "Describes the connection."},
		{name: "client|list", arity: -2, run: clientList, settles: true, flags: admin, summary: "Describes all connections, those of a type, or those with some ids.",
			args: []argument{text("client-type", "TYPE"), {name: "client-id", kind: "integer", token: "ID", optional: true, multiple: true}}},
		{name: "client|kill", arity: -3, run: clientKill, settles: true, needs: MayAdmin, flags: admin,
			summary: "Ends the connection from an address, or those that meet all filters.",
			args: []argument{{name: "filter", kind: "oneof", oneOf: []argument{
				{name: "old-format", kind: "string"},
				{name: "new-format", kind: "block", multiple: true, oneOf: []argument{
					{name: "client-id", kind: "integer", token: "ID", optional: true}, text("client-type", "TYPE"), text("username", "USER"),
					text("addr", "ADDR"), text("laddr", "LADDR"), text("yes-or-no", "SKIPME"),
					{name: "maxage", kind: "integer", token: "MAXAGE", optional: true},
				}},
			}}}},
		{name: "client|reply", arity: 3, run: clientReply, flags: flags, summary: "Turns replies on, off, or skips the next.",
			args: []argument{{name: "mode", kind: "string"}}},
		{name: "client|no-evict", arity: 3, run: clientSwitch, flags: flags, summary: "Accepted; clients are never evicted.", args: onOff},
		{name: "client|no-touch", arity: 3, run: clientSwitch, flags: flags, summary: "Accepted; reading a key never changes it.", args: onOff},
		{name: "client|tracking", arity: -3, run: clientTracking, flags: flags,
			summary: "Accepted; in RESP3 what was read is said to be stale at once, as it changes with the clock.",
			args: append(onOff[:1:1], argument{name: "prefix", kind: "string", token: "PREFIX", optional: true, multiple: true},
				argument{name: "bcast", kind: "pure-token", token: "BCAST", optional: true}, argument{name: "optin", kind: "pure-token", token: "OPTIN", optional: true},
				argument{name: "optout", kind: "pure-token", token: "OPTOUT", optional: true}, argument{name: "noloop", kind: "pure-token", token: "NOLOOP", optional: true})},
		{name: "client|trackinginfo", arity: 2, run: clientTrackingInfo, flags: flags, summary: "Returns what CLIENT TRACKING was told."},
		{name: "client|caching", arity: 3, run: clientCaching, flags: flags, summary: "Says whether the client may cache the next reply.",
			args: []argument{{name: "mode", kind: "oneof", oneOf: []argument{
				{name: "yes", kind: "pure-token", token: "YES"}, {name: "no", kind: "pure-token", token: "NO"}}}}},
		{name: "client|getredir", arity: 2, run: clientGetRedir, flags: flags, summary: "Returns 0 with CLIENT TRACKING, -1 without."},
	}}
	return grouped("connection", []*command{client})
}
