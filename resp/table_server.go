package resp

func serverCommands() []*command {
	names := []argument{{name: "command-name", kind: "string", optional: true, multiple: true}}
	const open = "loading stale"
	list := []*command{
		{name: "info", arity: -1, run: info, settles: true, flags: open, summary: "Tells about the node, in sections.",
			args: []argument{{name: "section", kind: "string", optional: true, multiple: true}}},
		{name: "role", arity: 1, run: role, settles: true, flags: open + " fast", summary: "Returns master: every node takes every command."},
		{name: "time", arity: 1, run: clock, settles: true, flags: open + " fast", summary: "Returns the date by cluster time: seconds and microseconds."},
		{name: "wait", arity: 3, run: wait, settles: true, flags: "blocking",
			summary: "Returns how many other nodes are certain to hold what was answered on this connection.",
			args:    []argument{{name: "numreplicas", kind: "integer"}, {name: "timeout", kind: "integer"}}},
		{name: "command", arity: -1, run: commandAll, flags: open, summary: "Describes all commands.", subs: []*command{
			{name: "command|count", arity: 2, run: commandCount, flags: open, summary: "Returns the number of commands."},
			{name: "command|info", arity: -2, run: commandInfo, flags: open, summary: "Describes commands.", args: names},
			{name: "command|docs", arity: -2, run: commandDocs, flags: open, summary: "Documents commands.", args: names},
			{name: "command|list", arity: -2, run: commandList, flags: open, summary: "Returns the names of commands.",
				args: []argument{{name: "filterby", kind: "string", token: "FILTERBY", optional: true}, {name: "pattern", kind: "pattern", optional: true}}},
			{name: "command|getkeys", arity: -4, run: commandGetKeys, flags: open, summary: "Returns the keys of a full command.",
				args: []argument{{name: "command", kind: "string"}, {name: "arg", kind: "string", optional: true, multiple: true}}},
		}},
		{name: "config", arity: -2, summary: "Commands about settings.", later: []string{"set", "rewrite", "resetstat"}, subs: []*command{
			{name: "config|get", arity: -3, run: configGet, flags: "admin noscript " + open, summary: "Returns settings by patterns.",
				args: []argument{{name: "parameter", kind: "string", multiple: true}}},
		}},
	}
	return grouped("server", list)
}

func clusterCommands() []*command {
	idAndForce := []argument{{name: "id", kind: "string"}, {name: "force", kind: "pure-token", token: "FORCE", optional: true}}
	list := []*command{
		{name: "rl.cluster", arity: -2, summary: "Commands about the nodes.", later: []string{"calendar"},
			subs: []*command{
				{name: "rl.cluster|nodes", arity: 2, run: clusterNodes, settles: true, flags: "admin stale", summary: "Returns one flat array of name and value per node."},
				{name: "rl.cluster|status", arity: 2, run: clusterStatus, settles: true, flags: "admin stale", summary: "Returns this node's view of the cluster as name and value in turn."},
				{name: "rl.cluster|join", arity: -4, run: changeCommand(ChangeJoin), needs: MayAdmin, settles: true, flags: "admin",
					summary: "Takes in a node that waits at its peer address, as a non-voter; it gets its vote once it is caught up.",
					args: []argument{{name: "id", kind: "string"}, {name: "peer-address", kind: "string"},
						{name: "nonvoter", kind: "pure-token", token: "NONVOTER", optional: true}}},
				{name: "rl.cluster|promote", arity: -3, run: changeCommand(ChangePromote), needs: MayAdmin, settles: true, flags: "admin", args: idAndForce,
					summary: "Gives a vote to a non-voter that is caught up."},
				{name: "rl.cluster|demote", arity: -3, run: changeCommand(ChangeDemote), needs: MayAdmin, settles: true, flags: "admin", args: idAndForce,
					summary: "Takes the vote from a node, which stays a member."},
				{name: "rl.cluster|remove", arity: -3, run: changeCommand(ChangeRemove), needs: MayAdmin, settles: true, flags: "admin", args: idAndForce,
					summary: "Removes a member, dead or alive; if it runs, it stops itself."},
				{name: "rl.cluster|leave", arity: -2, run: changeCommand(ChangeLeave), needs: MayAdmin, settles: true, flags: "admin", args: idAndForce[1:],
					summary: "Removes the node that is asked, which then stops."},
				{name: "rl.cluster|transfer", arity: -2, run: changeCommand(ChangeTransfer), needs: MayAdmin, settles: true, flags: "admin", summary: "Hands leadership over.",
					args: []argument{{name: "id", kind: "string", optional: true}}},
			}},
		{name: "rl.hash", arity: 1, run: rlHash, settles: true, flags: "admin stale",
			summary: "Returns [index, hash] pairs of the chain hash over applied entries; the newest applied index comes last."},
		{name: "rl.snapshot", arity: -2, summary: "Commands about snapshots.", subs: []*command{
			{name: "rl.snapshot|save", arity: 2, run: snapshotSave, needs: MayAdmin, settles: true, flags: "admin", summary: "Writes a snapshot on this node and returns its path."},
		}},
		{name: "cluster", arity: -2, run: noCluster, needs: mayAll, flags: "admin stale", summary: "Redis Cluster is not spoken on this port: every node takes every command."},
		{name: "readonly", arity: 1, run: noCluster, flags: "loading stale fast", summary: "Redis Cluster is not spoken on this port."},
		{name: "readwrite", arity: 1, run: noCluster, flags: "loading stale fast", summary: "Redis Cluster is not spoken on this port."},
		{name: "asking", arity: 1, run: noCluster, flags: "fast", summary: "Redis Cluster is not spoken on this port."},
	}
	return grouped("cluster", list)
}
