package resp

import (
	"fmt"
	"strconv"

	"github.com/tidwall/redcon"

	"limitd/limiter"
)

// scanMax bounds the COUNT of SCAN, and so what one SCAN holds in memory.
const scanMax = 10000

// checkKeys refuses keys that are too long. Any bytes are a key, none too.
func (c *client) checkKeys(keys [][]byte) error {
	for _, k := range keys {
		if len(k) > c.srv.cfg.MaxKey {
			return fmt.Errorf("key is too long: %d bytes are more than limits.max_key = %d", len(k), c.srv.cfg.MaxKey)
		}
	}
	return nil
}

// keyed makes a command whose arguments are all keys of one call.
func keyed(op limiter.Op, f form) func(*client, [][]byte) error {
	return func(c *client, args [][]byte) error {
		keys := args[1:]
		if err := c.checkKeys(keys); err != nil {
			return err
		}
		call := c.call(f)
		call.Op, call.Key, call.More = op, keys[0], c.s.keys(keys[1:])
		return nil
	}
}

// flush makes FLUSHDB or FLUSHALL [ASYNC|SYNC]. Both are done when answered.
func flush(op limiter.Op) func(*client, [][]byte) error {
	return func(c *client, args [][]byte) error {
		if len(args) > 2 || len(args) == 2 && !is(args[1], "async") && !is(args[1], "sync") {
			return errSyntaxOf
		}
		c.call(okay).Op = op
		return nil
	}
}

// dbsize is DBSIZE: keys of the namespace that hold state on this node.
func dbsize(c *client, dst []byte, _ [][]byte) []byte {
	return redcon.AppendInt(dst, int64(c.srv.limiter.Size(uint8(c.db.Load()))))
}

// scan is SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]: keys of the
// namespace on this node. A cursor is good on every node.
func scan(c *client, dst []byte, args [][]byte) []byte {
	cursor, ok := parseUint(args[1])
	if !ok {
		return redcon.AppendError(dst, "ERR invalid cursor")
	}
	var pattern []byte
	count, wanted := int64(10), true
	for opts := args[2:]; len(opts) > 0; opts = opts[2:] {
		if len(opts) == 1 {
			return redcon.AppendError(dst, errSyntax)
		}
		switch value := opts[1]; {
		case is(opts[0], "match"):
			pattern = value
		case is(opts[0], "type"):
			wanted = is(value, "limit")
		case is(opts[0], "count"):
			if count, ok = parseInt(value); !ok {
				return redcon.AppendError(dst, errInteger)
			}
			if count < 1 {
				return redcon.AppendError(dst, errSyntax)
			}
		default:
			return redcon.AppendError(dst, errSyntax)
		}
	}
	keys, next := c.srv.limiter.Scan(uint8(c.db.Load()), cursor, int(min(count, scanMax)))
	n := 0
	for _, k := range keys {
		if wanted && c.mayNameKey(k) && (pattern == nil || glob(pattern, k)) {
			keys[n] = k
			n++
		}
	}
	dst = redcon.AppendArray(dst, 2)
	dst = redcon.AppendBulkString(dst, strconv.FormatUint(next, 10))
	dst = redcon.AppendArray(dst, n)
	for _, k := range keys[:n] {
		dst = redcon.AppendBulk(dst, k)
	}
	return dst
}
