package resp

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tidwall/redcon"
)

// Nothing is ever published on this port. Clients that subscribe to be told of changes
// of a deployment (there are none here that they would have to know of) find all that
// they need to be content: confirmations, the states that follow, and silence.

// The bounds of what one connection may subscribe to, because names are kept as long as it.
const (
	maxChannels     = 128
	maxChannelBytes = 4 << 10
)

// subscriptions of a connection: to channels, patterns and shard channels.
type subscriptions struct {
	names [3][]string
	bytes int
	only  bool            // there are any: in RESP2 little else is allowed
	n     [3]atomic.Int32 // how many, for CLIENT LIST of others
}

// The kinds of subscriptions.
const (
	toChannel = iota
	toPattern
	toShard
)

var kindPrefix = [...]string{"", "p", "s"}

func (s *subscriptions) clear() {
	for kind := range s.names {
		s.names[kind] = nil
		s.n[kind].Store(0)
	}
	s.bytes, s.only = 0, false
}

// total is the number that a confirmation tells: channels and patterns together, shard channels apart.
func (s *subscriptions) total(kind int) int {
	if kind == toShard {
		return len(s.names[toShard])
	}
	return len(s.names[toChannel]) + len(s.names[toPattern])
}

func (s *subscriptions) all() int { return s.total(toChannel) + s.total(toShard) }

func errSubscribed(name string) string {
	return fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", name)
}

// confirmation renders that the connection subscribed or unsubscribed.
func (c *client) confirmation(dst []byte, verb string, kind int, name []byte) []byte {
	t := byte('*')
	if c.p() == 3 {
		t = '>'
	}
	dst = redcon.AppendBulkString(header(dst, t, 3), kindPrefix[kind]+verb)
	if name == nil {
		dst = c.p().null(dst)
	} else {
		dst = redcon.AppendBulk(dst, name)
	}
	return redcon.AppendInt(dst, int64(c.subs.total(kind)))
}

// subscribe makes SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE name [name …]: one confirmation
// per name. Names beyond the bounds are refused all together.
func subscribe(kind int) func(*client, []byte, [][]byte) []byte {
	return func(c *client, dst []byte, args [][]byte) []byte {
		s := &c.subs
		more, size := 0, s.bytes
		for i, name := range args[1:] {
			if !slices.Contains(s.names[kind], string(name)) && !containsBytes(args[1:1+i], name) {
				more, size = more+1, size+len(name)
			}
			if s.all()+more > maxChannels || size > maxChannelBytes {
				return redcon.AppendError(dst, fmt.Sprintf(
					"ERR too many subscriptions: a connection may have %d, whose names have %d bytes together", maxChannels, maxChannelBytes))
			}
		}
		for _, name := range args[1:] {
			if !slices.Contains(s.names[kind], string(name)) {
				s.names[kind] = append(s.names[kind], string(name))
				s.bytes += len(name)
			}
			s.changed(kind)
			dst = c.confirmation(dst, "subscribe", kind, name)
		}
		c.aloud = c.mute || c.skip
		return dst
	}
}

// unsubscribe makes UNSUBSCRIBE, PUNSUBSCRIBE or SUNSUBSCRIBE [name …]; without names: from all.
func unsubscribe(kind int) func(*client, []byte, [][]byte) []byte {
	return func(c *client, dst []byte, args [][]byte) []byte {
		s, names := &c.subs, args[1:]
		if len(names) == 0 {
			for _, name := range s.names[kind] {
				names = append(names, []byte(name))
			}
		}
		for _, name := range names {
			if i := slices.Index(s.names[kind], string(name)); i >= 0 {
				s.names[kind] = slices.Delete(s.names[kind], i, i+1)
				s.bytes -= len(name)
				s.changed(kind)
			}
			dst = c.confirmation(dst, "unsubscribe", kind, name)
		}
		if len(names) == 0 {
			dst = c.confirmation(dst, "unsubscribe", kind, nil)
		}
		c.aloud = c.mute || c.skip
		return dst
	}
}

// changed follows a change of the names of a kind.
func (s *subscriptions) changed(kind int) {
	s.only = s.all() > 0
	s.n[kind].Store(int32(len(s.names[kind])))
}

func containsBytes(list [][]byte, b []byte) bool {
	return slices.ContainsFunc(list, func(x []byte) bool { return string(x) == string(b) })
}

// publish is PUBLISH or SPUBLISH channel message. Nobody gets the message, and the
// reply says so: 0 is the number of receivers.
func publish(_ *client, dst []byte, _ [][]byte) []byte { return redcon.AppendInt(dst, 0) }

// numSub is PUBSUB NUMSUB or SHARDNUMSUB [channel …]: the channel and the number of
// its subscribers that would get a message, 0, in turn.
func numSub(_ *client, dst []byte, args [][]byte) []byte {
	dst = redcon.AppendArray(dst, 2*(len(args)-2))
	for _, channel := range args[2:] {
		dst = redcon.AppendInt(redcon.AppendBulk(dst, channel), 0)
	}
	return dst
}
