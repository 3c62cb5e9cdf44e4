package resp

// pubsubCommands are accepted in full, though no message ever comes.
func pubsubCommands() []*command {
	const flags = "pubsub noscript loading stale"
	names := func(name string, optional bool) []argument {
		return []argument{{name: name, kind: "string", optional: optional, multiple: true}}
	}
	message := []argument{{name: "channel", kind: "string"}, {name: "message", kind: "string"}}
	channels := names("channel", true)
	list := []*command{
		{name: "subscribe", arity: -2, run: subscribe(toChannel), summary: "Subscribes to channels. No message is ever published here.", args: names("channel", false)},
		{name: "psubscribe", arity: -2, run: subscribe(toPattern), summary: "Subscribes to patterns. No message is ever published here.", args: names("pattern", false)},
		{name: "ssubscribe", arity: -2, run: subscribe(toShard), summary: "Subscribes to shard channels. No message is ever published here.", args: names("shardchannel", false)},
		{name: "unsubscribe", arity: -1, run: unsubscribe(toChannel), summary: "Unsubscribes from channels, or from all.", args: channels},
		{name: "punsubscribe", arity: -1, run: unsubscribe(toPattern), summary: "Unsubscribes from patterns, or from all.", args: names("pattern", true)},
		{name: "sunsubscribe", arity: -1, run: unsubscribe(toShard), summary: "Unsubscribes from shard channels, or from all.", args: names("shardchannel", true)},
	}
	for _, cmd := range list {
		cmd.flags, cmd.pubsub = flags, true
	}
	list = append(list,
		&command{name: "publish", arity: 3, run: publish, flags: "pubsub loading stale fast", summary: "Returns 0: nobody gets the message, as limitd delivers none.", args: message},
		&command{name: "spublish", arity: 3, run: publish, flags: "pubsub loading stale fast", summary: "Returns 0: nobody gets the message, as limitd delivers none.", args: message},
		&command{name: "pubsub", arity: -2, summary: "Tells that nobody gets messages, as limitd delivers none.", subs: []*command{
			{name: "pubsub|channels", arity: -2, run: noElements, flags: "pubsub loading stale", summary: "Returns an empty list.",
				args: []argument{{name: "pattern", kind: "pattern", optional: true}}},
			{name: "pubsub|numsub", arity: -2, run: numSub, flags: "pubsub loading stale", summary: "Returns 0 for each channel.", args: channels},
			{name: "pubsub|numpat", arity: 2, run: zero, flags: "pubsub loading stale", summary: "Returns 0."},
			{name: "pubsub|shardchannels", arity: -2, run: noElements, flags: "pubsub loading stale", summary: "Returns an empty list.",
				args: []argument{{name: "pattern", kind: "pattern", optional: true}}},
			{name: "pubsub|shardnumsub", arity: -2, run: numSub, flags: "pubsub loading stale", summary: "Returns 0 for each channel.", args: channels},
		}},
	)
	return grouped("pubsub", list)
}
