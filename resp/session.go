package resp

import (
	"fmt"

	"github.com/tidwall/redcon"

	"limitd/limiter"
)

// redisVersion is what clients are told they talk to. Below 8 because some
// clients then expect commands of Redis 8.
const redisVersion = "7.4.0"

// ping is PING [message]. While subscribed in RESP2 the reply has the form of a message.
func ping(c *client, dst []byte, args [][]byte) []byte {
	if c.subs.only && c.p() == 2 && len(args) <= 2 {
		dst = redcon.AppendBulkString(redcon.AppendArray(dst, 2), "pong")
		if len(args) == 1 {
			return redcon.AppendBulkString(dst, "")
		}
		return redcon.AppendBulk(dst, args[1])
	}
	switch len(args) {
	case 1:
		return append(dst, "+PONG\r\n"...)
	case 2:
		return redcon.AppendBulk(dst, args[1])
	}
	return redcon.AppendError(dst, errArity("ping"))
}

func echo(c *client, dst []byte, args [][]byte) []byte { return redcon.AppendBulk(dst, args[1]) }

// hello is HELLO [version [AUTH user password] [SETNAME name]]. The reply is in
// the new protocol; after an error nothing has changed.
func hello(c *client, dst []byte, args [][]byte) []byte {
	version, name, named, user := c.p(), "", false, c.user()
	if len(args) > 1 {
		v, ok := parseInt(args[1])
		if !ok {
			return redcon.AppendError(dst, "ERR Protocol version is not an integer or out of range")
		}
		if v != 2 && v != 3 {
			return redcon.AppendError(dst, "NOPROTO unsupported protocol version")
		}
		version = proto(v)
		for opts := args[2:]; len(opts) > 0; {
			switch {
			case is(opts[0], "auth") && len(opts) > 2:
				if user = c.login(opts[1], opts[2]); user == nil {
					return redcon.AppendError(c.begin(), errWrongPass)
				}
				opts = opts[3:]
			case is(opts[0], "setname") && len(opts) > 1:
				if text := badName(opts[1]); text != "" {
					return redcon.AppendError(dst, text)
				}
				name, named = string(opts[1]), true
				opts = opts[2:]
			default:
				return redcon.AppendError(dst, fmt.Sprintf("ERR Syntax error in HELLO option '%s'", quoted(opts[0])))
			}
		}
	}
	if user == nil {
		return redcon.AppendError(dst, errHelloNoAuth)
	}
	c.become(user)
	c.proto.Store(uint32(version))
	if named {
		c.setName(name)
	}
	dst = version.mapOf(dst, 7)
	dst = appendPair(dst, "server", "redis")
	dst = appendPair(dst, "version", redisVersion)
	dst = redcon.AppendInt(redcon.AppendBulkString(dst, "proto"), int64(version))
	dst = redcon.AppendInt(redcon.AppendBulkString(dst, "id"), c.id)
	dst = appendPair(dst, "mode", "standalone")
	dst = appendPair(dst, "role", "master")
	return redcon.AppendArray(redcon.AppendBulkString(dst, "modules"), 0)
}

func selectDB(c *client, dst []byte, args [][]byte) []byte {
	n, ok := parseInt(args[1])
	switch {
	case !ok:
		return redcon.AppendError(dst, errInteger)
	case n < 0 || n >= limiter.Namespaces:
		return redcon.AppendError(dst, "ERR DB index is out of range")
	}
	c.db.Store(uint32(n))
	return redcon.AppendOK(dst)
}

func quit(c *client, dst []byte, _ [][]byte) []byte {
	c.quit = errQuit
	return redcon.AppendOK(dst)
}

func reset(c *client, dst []byte, _ [][]byte) []byte {
	c.reset()
	return append(dst, "+RESET\r\n"...)
}
