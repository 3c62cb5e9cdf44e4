package resp

import (
	"strings"

	"github.com/tidwall/redcon"
)

// docs renders name and documentation as COMMAND DOCS does. redis-cli makes its
// hints of the arguments.
func (cmd *command) docs(dst []byte, p proto) []byte {
	dst = redcon.AppendBulkString(dst, cmd.name)
	fields := 3 + oneIf(len(cmd.args) > 0) + oneIf(len(cmd.subs) > 0)
	dst = p.mapOf(dst, fields)
	dst = appendPair(dst, "summary", cmd.summary)
	dst = appendPair(dst, "since", cmd.since)
	dst = appendPair(dst, "group", cmd.group)
	if len(cmd.args) > 0 {
		dst = appendArguments(redcon.AppendBulkString(dst, "arguments"), p, cmd.args)
	}
	if len(cmd.subs) > 0 {
		dst = p.mapOf(redcon.AppendBulkString(dst, "subcommands"), len(cmd.subs))
		for _, sub := range cmd.subs {
			dst = sub.docs(dst, p)
		}
	}
	return dst
}

func appendArguments(dst []byte, p proto, args []argument) []byte {
	dst = redcon.AppendArray(dst, len(args))
	for _, a := range args {
		flags := a.flags()
		isKey := a.kind == "key"
		dst = p.mapOf(dst, 2+oneIf(isKey)+oneIf(a.token != "")+oneIf(flags != "")+oneIf(a.oneOf != nil))
		dst = appendPair(dst, "name", a.name)
		dst = appendPair(dst, "type", a.kind)
		if isKey {
			dst = appendIntPair(dst, "key_spec_index", 0)
		}
		if a.token != "" {
			dst = appendPair(dst, "token", a.token)
		}
		if flags != "" {
			dst = statusSet(redcon.AppendBulkString(dst, "flags"), p, flags)
		}
		if a.oneOf != nil {
			dst = appendArguments(redcon.AppendBulkString(dst, "arguments"), p, a.oneOf)
		}
	}
	return dst
}

func (a *argument) flags() string {
	switch {
	case a.optional && a.multiple:
		return "optional multiple"
	case a.optional:
		return "optional"
	case a.multiple:
		return "multiple"
	}
	return ""
}

// synopsis is the argument as a usage line writes it.
func (a *argument) synopsis() string {
	s := "<" + a.name + ">"
	switch {
	case a.kind == "block":
		var parts []string
		for _, o := range a.oneOf {
			parts = append(parts, o.synopsis())
		}
		s = strings.Join(parts, " ")
	case a.oneOf != nil:
		var alt []string
		for _, o := range a.oneOf {
			alt = append(alt, o.synopsis())
		}
		s = strings.Join(alt, "|")
	case a.kind == "pure-token":
		s = a.token
	case a.token != "":
		s = a.token + " " + s
	}
	if a.multiple {
		s += " ..."
	}
	if a.optional {
		s = "[" + s + "]"
	}
	return s
}

// helpOf makes the HELP of a container: a line for each subcommand, and one
// that says what it is for.
func helpOf(cmd *command) *command {
	lines := []string{cmd.upper + " <subcommand> [<arg> ...]. Subcommands are:"}
	for _, sub := range cmd.subs {
		line := strings.ToUpper(sub.sub())
		for _, a := range sub.args {
			line += " " + a.synopsis()
		}
		lines = append(lines, line, "    "+sub.summary)
	}
	name := cmd.name + "|help"
	return &command{
		name: name, upper: strings.ToUpper(name), arity: 2, flags: "loading stale", group: cmd.group, since: cmd.since,
		summary: "Lists the subcommands.",
		run: func(_ *client, dst []byte, _ [][]byte) []byte {
			dst = redcon.AppendArray(dst, len(lines))
			for _, l := range lines {
				dst = redcon.AppendString(dst, l)
			}
			return dst
		},
	}
}
