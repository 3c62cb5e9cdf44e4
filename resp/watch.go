package resp

import (
	"fmt"

	"github.com/tidwall/redcon"
)

// memory is about the bytes of the key that args names behind a subcommand, by what this
// node holds, as SCAN is; 0 if it holds no state.
func (c *client) memory(args [][]byte) int64 {
	return c.srv.limiter.Memory(uint8(c.db.Load()), args[2])
}

// memoryUsage is MEMORY USAGE key [SAMPLES n]. A key is measured as a whole.
func memoryUsage(c *client, dst []byte, args [][]byte) []byte {
	for opts := args[3:]; len(opts) > 0; opts = opts[2:] {
		if !is(opts[0], "samples") || len(opts) == 1 {
			return redcon.AppendError(dst, errSyntax)
		}
		switch n, ok := parseInt(opts[1]); {
		case !ok:
			return redcon.AppendError(dst, errInteger)
		case n < 0:
			return redcon.AppendError(dst, errSyntax)
		}
	}
	n := c.memory(args)
	if n == 0 {
		return c.p().null(dst)
	}
	return redcon.AppendInt(dst, n)
}

func memoryDoctor(c *client, dst []byte, _ [][]byte) []byte {
	return c.p().text(dst, "limitd does not examine its memory. INFO memory tells how much the process holds, INFO limiter how much of it is the table.\n")
}

// objectEncoding and its like are what redis-cli and other tools ask about a key.
func objectEncoding(c *client, dst []byte, args [][]byte) []byte {
	if c.memory(args) == 0 {
		return c.p().null(dst)
	}
	return redcon.AppendBulkString(dst, "raw")
}

func objectFreq(c *client, dst []byte, args [][]byte) []byte {
	if c.memory(args) == 0 {
		return c.p().null(dst)
	}
	return redcon.AppendError(dst, "ERR An LFU maxmemory policy is not selected, access frequency not tracked. limitd has none, as it evicts nothing.")
}

func objectIdleTime(c *client, dst []byte, args [][]byte) []byte {
	if c.memory(args) == 0 {
		return c.p().null(dst)
	}
	return redcon.AppendInt(dst, 0)
}

func objectRefCount(c *client, dst []byte, args [][]byte) []byte {
	if c.memory(args) == 0 {
		return c.p().null(dst)
	}
	return redcon.AppendInt(dst, 1)
}

// slowlogGet is SLOWLOG GET [count].
func slowlogGet(_ *client, dst []byte, args [][]byte) []byte {
	switch {
	case len(args) > 3:
		return redcon.AppendError(dst, "ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.")
	case len(args) == 3:
		if n, ok := parseInt(args[2]); !ok || n < -1 {
			return redcon.AppendError(dst, "ERR count should be greater than or equal to -1")
		}
	}
	return redcon.AppendArray(dst, 0)
}

func latencyDoctor(c *client, dst []byte, _ [][]byte) []byte {
	return c.p().text(dst, "limitd records no latency events. LATENCY HISTOGRAM and INFO latencystats tell the latencies of each command, INFO raft those of the disk.\n")
}

func latencyGraph(_ *client, dst []byte, args [][]byte) []byte {
	return redcon.AppendError(dst, fmt.Sprintf("ERR No samples available for event '%s'", quoted(args[2])))
}

// lolwut is LOLWUT [VERSION n …].
func lolwut(c *client, dst []byte, args [][]byte) []byte {
	if len(args) > 2 && is(args[1], "version") {
		if _, ok := parseInt(args[2]); !ok {
			return redcon.AppendError(dst, errInteger)
		}
	}
	return c.p().text(dst, fmt.Sprintf("limitd ver. %s. Redis ver. %s\n", c.srv.cfg.Version, redisVersion))
}

// unsupported are commands of Redis that a person may try here, and what to do instead.
// They are not in the table, so that no tool takes them for commands of limitd. What
// clients probe a server for (SENTINEL, EVALSHA, MULTI, SYNC, …) stays an unknown
// command, because they look for that very error.
var unsupported = map[string]string{
	"debug":        "ERR DEBUG is not supported by limitd: RL.CLUSTER STATUS, RL.HASH and INFO tell about a node",
	"monitor":      "ERR MONITOR is not supported by limitd: INFO commandstats counts the calls of each command",
	"shutdown":     "ERR SHUTDOWN is not supported by limitd: send SIGTERM to the process, or RL.CLUSTER LEAVE to remove the node",
	"save":         "ERR SAVE is not supported by limitd, which has everything on disk before it answers: RL.SNAPSHOT SAVE writes a copy",
	"bgsave":       "ERR BGSAVE is not supported by limitd, which has everything on disk before it answers: RL.SNAPSHOT SAVE writes a copy",
	"bgrewriteaof": "ERR BGREWRITEAOF is not supported by limitd, which shortens its log by itself",
	"replicaof":    "ERR REPLICAOF is not supported by limitd: RL.CLUSTER JOIN adds a node, RL.CLUSTER REMOVE removes one",
	"slaveof":      "ERR SLAVEOF is not supported by limitd: RL.CLUSTER JOIN adds a node, RL.CLUSTER REMOVE removes one",
	"failover":     "ERR FAILOVER is not supported by limitd: RL.CLUSTER TRANSFER hands leadership over",
}
