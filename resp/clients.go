package resp

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidwall/redcon"
)

// hasUser says that there is a user of that name.
func (s *Server) hasUser(name []byte) bool {
	if len(s.users) == 0 {
		return string(name) == defaultUser
	}
	return s.users[string(name)] != nil
}

// whoAmI is ACL WHOAMI.
func whoAmI(c *client, dst []byte, _ [][]byte) []byte {
	return redcon.AppendBulkString(dst, c.userName())
}

// kind is what CLIENT LIST TYPE and CLIENT KILL TYPE tell clients apart by.
func (c *client) kind() string {
	for i := range c.subs.n {
		if c.subs.n[i].Load() > 0 {
			return "pubsub"
		}
	}
	return "normal"
}

// kindOf reads a client type. Replication is not over this port, so there are no
// clients of the types master and replica.
func kindOf(b []byte) (kind, text string) {
	for _, k := range []string{"normal", "pubsub", "replica", "slave", "master"} {
		if is(b, k) {
			return k, ""
		}
	}
	return "", fmt.Sprintf("ERR Unknown client type '%s'", quoted(b))
}

func clientInfo(c *client, dst []byte, _ [][]byte) []byte {
	return c.p().text(dst, c.line(time.Now()))
}

// clientList is CLIENT LIST [TYPE type | ID id [id …]].
func clientList(c *client, dst []byte, args [][]byte) []byte {
	wanted := func(*client) bool { return true }
	switch opts := args[2:]; {
	case len(opts) == 0:
	case is(opts[0], "type") && len(opts) == 2:
		kind, text := kindOf(opts[1])
		if text != "" {
			return redcon.AppendError(dst, text)
		}
		wanted = func(o *client) bool { return o.kind() == kind }
	case is(opts[0], "id") && len(opts) > 1:
		ids := map[int64]bool{}
		for _, arg := range opts[1:] {
			id, ok := parseInt(arg)
			if !ok {
				return redcon.AppendError(dst, "ERR Invalid client ID")
			}
			ids[id] = true
		}
		wanted = func(o *client) bool { return ids[o.id] }
	default:
		return redcon.AppendError(dst, errSyntax)
	}
	var b strings.Builder
	now := time.Now()
	for _, o := range c.srv.clients() {
		if wanted(o) {
			b.WriteString(o.line(now))
		}
	}
	return c.p().text(dst, b.String())
}

// line is the client as a line of CLIENT LIST.
func (c *client) line(now time.Time) string {
	cmd, flags := "NULL", ""
	if l := c.command.Load(); l != nil {
		cmd = l.name
	}
	if c.kind() == "pubsub" {
		flags += "P"
	}
	redirect := -1
	if c.tracks.Load() {
		flags += "t"
		redirect = 0
	}
	if flags == "" {
		flags = "N"
	}
	age, idle := now.Sub(c.since), now.Sub(c.srv.started.Add(time.Duration(c.used.Load())))
	n := &c.subs.n
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=-1 cmd=%s user=%s redir=%d lib-name=%s lib-ver=%s resp=%d\n",
		c.id, c.addr, c.laddr, c.name, int(age.Seconds()), int(max(0, idle).Seconds()), flags, c.db.Load(),
		n[toChannel].Load(), n[toPattern].Load(), n[toShard].Load(), cmd, c.userName(), redirect, c.libName, c.libVer, c.proto.Load())
}

// killing is which clients CLIENT KILL is to end: those for which all is true.
type killing struct {
	id          int64 // 0: any, as for the empty strings
	addr, laddr string
	kind        string
	user        string
	age         time.Duration // at least
	self        bool          // even the one who asks
}

// read reads filters and their values in turn, or says what is wrong.
func (k *killing) read(s *Server, opts [][]byte) (text string) {
	for ; len(opts) > 1; opts = opts[2:] {
		value := opts[1]
		switch name := opts[0]; {
		case is(name, "id"):
			var ok bool
			if k.id, ok = parseInt(value); !ok || k.id < 1 {
				return "ERR client-id should be greater than 0"
			}
		case is(name, "type"):
			if k.kind, text = kindOf(value); text != "" {
				return text
			}
		case is(name, "addr"):
			k.addr = string(value)
		case is(name, "laddr"):
			k.laddr = string(value)
		case is(name, "user"):
			if !s.hasUser(value) {
				return fmt.Sprintf("ERR No such user '%s'", quoted(value))
			}
			k.user = string(value)
		case is(name, "maxage"):
			n, ok := parseInt(value)
			if !ok || n < 1 || n > math.MaxInt64/int64(time.Second) {
				return "ERR maxage is not an integer or out of range"
			}
			k.age = time.Duration(n) * time.Second
		case is(name, "skipme") && is(value, "yes"):
			k.self = false
		case is(name, "skipme") && is(value, "no"):
			k.self = true
		default:
			return errSyntax
		}
	}
	if len(opts) > 0 {
		return errSyntax
	}
	return ""
}

func (k *killing) meets(o *client, now time.Time) bool {
	return (k.id == 0 || o.id == k.id) &&
		(k.addr == "" || o.addr == k.addr) &&
		(k.laddr == "" || o.laddr == k.laddr) &&
		(k.kind == "" || o.kind() == k.kind) &&
		(k.user == "" || o.userName() == k.user) &&
		now.Sub(o.since) >= k.age
}

// clientKill is CLIENT KILL addr, answered OK, or CLIENT KILL filter value …, answered
// with the number of connections that are ended.
func clientKill(c *client, dst []byte, args [][]byte) []byte {
	var k killing
	old := len(args) == 3
	if old {
		k.addr, k.self = string(args[2]), true
	} else if text := k.read(c.srv, args[2:]); text != "" {
		return redcon.AppendError(dst, text)
	}
	killed, now := int64(0), time.Now()
	for _, o := range c.srv.snapshot() {
		if !k.meets(&o.client, now) {
			continue
		}
		if &o.client != c {
			o.nc.Close() // its goroutine finds out and cleans up
		} else if k.self {
			c.quit = errQuit // after the reply
		} else {
			continue
		}
		killed++
	}
	switch {
	case !old:
		return redcon.AppendInt(dst, killed)
	case killed == 0:
		return redcon.AppendError(dst, "ERR No such client")
	}
	return redcon.AppendOK(dst)
}
