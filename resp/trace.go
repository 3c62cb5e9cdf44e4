package resp

import (
	"fmt"
	"strconv"

	"github.com/tidwall/redcon"
)

// traceCommand is RL.TRACE, which only nodes that write a trace know.
func traceCommand() *command {
	return &command{
		name: "rl.trace", arity: 2, run: tagNext,
		flags: "fast", group: "limit", since: "0.1.0",
		args:    []argument{{name: "tag", kind: "integer"}},
		summary: "Names the next call of this connection in the node's trace.",
	}
}

// tagNext is RL.TRACE tag.
func tagNext(c *client, dst []byte, args [][]byte) []byte {
	tag, err := strconv.ParseUint(string(args[1]), 10, 64)
	if err != nil || tag == 0 {
		return redcon.AppendError(dst, fmt.Sprintf("ERR tag: want a number from 1 to 18446744073709551615, not %s", quoted(args[1])))
	}
	c.tag = tag
	return redcon.AppendOK(dst)
}
