package resp

import (
	"strings"
	"sync"

	"github.com/tidwall/redcon"
)

// commandAll is COMMAND: one entry per command.
func commandAll(c *client, dst []byte, _ [][]byte) []byte {
	return append(dst, c.srv.table.rendered(c.p()).entries...)
}

// rendered is what COMMAND and COMMAND DOCS tell of all commands, in one protocol. It is
// long, clients ask for it at each start, and it never changes.
type rendered struct {
	once          sync.Once
	entries, docs []byte
}

func (t *table) rendered(p proto) *rendered {
	r := &t.told[p-2]
	r.once.Do(func() {
		r.entries = redcon.AppendArray(nil, len(t.list))
		r.docs = p.mapOf(nil, len(t.list))
		for _, cmd := range t.list {
			r.entries = cmd.entry(r.entries, p)
			r.docs = cmd.docs(r.docs, p)
		}
	})
	return r
}

func commandCount(c *client, dst []byte, _ [][]byte) []byte {
	return redcon.AppendInt(dst, int64(len(c.srv.table.list)))
}

// commandInfo is COMMAND INFO [name …]: one entry or null per name.
func commandInfo(c *client, dst []byte, args [][]byte) []byte {
	if len(args) == 2 {
		return commandAll(c, dst, args)
	}
	dst = redcon.AppendArray(dst, len(args)-2)
	for _, name := range args[2:] {
		if cmd := c.srv.table.findFull(name); cmd != nil {
			dst = cmd.entry(dst, c.p())
		} else {
			dst = c.p().null(dst)
		}
	}
	return dst
}

// commandDocs is COMMAND DOCS [name …]: a map from names to documentation,
// without the names that are unknown.
func commandDocs(c *client, dst []byte, args [][]byte) []byte {
	if len(args) == 2 {
		return append(dst, c.srv.table.rendered(c.p()).docs...)
	}
	var list []*command
	for _, name := range args[2:] {
		if cmd := c.srv.table.findFull(name); cmd != nil {
			list = append(list, cmd)
		}
	}
	dst = c.p().mapOf(dst, len(list))
	for _, cmd := range list {
		dst = cmd.docs(dst, c.p())
	}
	return dst
}

// commandList is COMMAND LIST [FILTERBY PATTERN|MODULE|ACLCAT value].
func commandList(c *client, dst []byte, args [][]byte) []byte {
	keep := func(*command) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) != 5 || !is(args[2], "filterby"):
		return redcon.AppendError(dst, errSyntax)
	case is(args[3], "pattern"):
		pattern := []byte(lowered(args[4]))
		keep = func(cmd *command) bool { return glob(pattern, []byte(cmd.name)) }
	case is(args[3], "module"):
		keep = func(*command) bool { return false }
	case is(args[3], "aclcat"):
		cat := "@" + lowered(args[4])
		keep = func(cmd *command) bool { return strings.Contains(" "+cmd.categories()+" ", " "+cat+" ") }
	default:
		return redcon.AppendError(dst, errSyntax)
	}
	var names []string
	for _, cmd := range c.srv.table.list {
		if keep(cmd) {
			names = append(names, cmd.name)
		}
	}
	dst = redcon.AppendArray(dst, len(names))
	for _, n := range names {
		dst = redcon.AppendBulkString(dst, n)
	}
	return dst
}

// commandGetKeys is COMMAND GETKEYS name [arg …].
func commandGetKeys(c *client, dst []byte, args [][]byte) []byte {
	args = args[2:]
	cmd := c.srv.table.find(args[0])
	if cmd != nil && cmd.subs != nil && len(args) > 1 {
		cmd = cmd.find(args[1])
	}
	switch {
	case cmd == nil:
		return redcon.AppendError(dst, "ERR Invalid command specified")
	case cmd.lastKey == 0 && cmd.keysOf == nil:
		return redcon.AppendError(dst, "ERR The command has no key arguments")
	case cmd.arity > 0 && len(args) != cmd.arity, len(args) < -cmd.arity:
		return redcon.AppendError(dst, "ERR Invalid number of arguments specified for command")
	}
	keys := cmd.keys(args)
	if keys == nil {
		return redcon.AppendError(dst, "ERR Invalid arguments specified for command")
	}
	dst = redcon.AppendArray(dst, len(keys))
	for _, k := range keys {
		dst = redcon.AppendBulk(dst, k)
	}
	return dst
}

// first is the index of the first key.
func (cmd *command) first() int {
	if cmd.lastKey == 0 {
		return 0
	}
	return max(1, cmd.firstKey)
}

// isOf says that cmd is a subcommand of the container.
func (cmd *command) isOf(container string) bool {
	rest, ok := strings.CutPrefix(cmd.name, container)
	return ok && strings.HasPrefix(rest, "|")
}

// find finds a subcommand by its own name, in whatever case.
func (cmd *command) find(name []byte) *command {
	for _, sub := range cmd.subs {
		if is(name, sub.sub()) {
			return sub
		}
	}
	return nil
}

// findFull finds a command, or a subcommand by its full name container|sub.
func (t *table) findFull(name []byte) *command {
	full := lowered(name)
	container, _, found := strings.Cut(full, "|")
	cmd := t.byName[container]
	if cmd == nil || !found {
		return cmd
	}
	for _, sub := range cmd.subs {
		if sub.name == full {
			return sub
		}
	}
	return nil
}

// entry renders the ten elements of COMMAND: name, arity, flags, first and last
// key, step, ACL categories, tips, key specifications, subcommands.
func (cmd *command) entry(dst []byte, p proto) []byte {
	dst = redcon.AppendArray(dst, 10)
	dst = redcon.AppendBulkString(dst, cmd.name)
	dst = redcon.AppendInt(dst, int64(cmd.arity))
	dst = statusSet(dst, p, cmd.flags)
	dst = redcon.AppendInt(dst, int64(cmd.first()))
	dst = redcon.AppendInt(dst, int64(cmd.lastKey))
	dst = redcon.AppendInt(dst, int64(oneIf(cmd.lastKey != 0)))
	dst = statusSet(dst, p, cmd.categories())
	dst = p.set(dst, 0)
	dst = cmd.keySpecs(dst, p)
	dst = redcon.AppendArray(dst, len(cmd.subs))
	for _, sub := range cmd.subs {
		dst = sub.entry(dst, p)
	}
	return dst
}

// keySpecs renders where the keys are: from the first on, relative to it to the last.
func (cmd *command) keySpecs(dst []byte, p proto) []byte {
	if cmd.lastKey == 0 {
		return p.set(dst, 0)
	}
	flags, last := "RW access update", int64(0)
	if strings.Contains(cmd.flags, "readonly") {
		flags = "RO access"
	}
	if cmd.lastKey < 0 {
		last = -1
	} else {
		last = int64(cmd.lastKey - cmd.first())
	}
	dst = p.set(dst, 1)
	dst = p.mapOf(dst, 3)
	dst = statusSet(redcon.AppendBulkString(dst, "flags"), p, flags)
	dst = p.mapOf(redcon.AppendBulkString(dst, "begin_search"), 2)
	dst = appendPair(dst, "type", "index")
	dst = p.mapOf(redcon.AppendBulkString(dst, "spec"), 1)
	dst = appendIntPair(dst, "index", int64(cmd.first()))
	dst = p.mapOf(redcon.AppendBulkString(dst, "find_keys"), 2)
	dst = appendPair(dst, "type", "range")
	dst = p.mapOf(redcon.AppendBulkString(dst, "spec"), 3)
	dst = appendIntPair(dst, "lastkey", last)
	dst = appendIntPair(dst, "keystep", 1)
	return appendIntPair(dst, "limit", 0)
}

// categories are the ACL categories that follow from flags and group.
func (cmd *command) categories() string {
	var cats []string
	speed := "@slow"
	for f := range strings.FieldsSeq(cmd.flags) {
		switch f {
		case "readonly":
			cats = append(cats, "@read")
		case "write":
			cats = append(cats, "@write")
		case "admin":
			cats = append(cats, "@admin", "@dangerous")
		case "fast":
			speed = "@fast"
		}
	}
	switch cmd.group {
	case "generic":
		cats = append(cats, "@keyspace")
	case "connection":
		cats = append(cats, "@connection")
	}
	return strings.Join(append(cats, speed), " ")
}

// statusSet renders blank separated words as a set of simple strings.
func statusSet(dst []byte, p proto, words string) []byte {
	list := strings.Fields(words)
	dst = p.set(dst, len(list))
	for _, w := range list {
		dst = redcon.AppendString(dst, w)
	}
	return dst
}
