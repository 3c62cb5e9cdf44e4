package history

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// WriteEDN writes history.edn beside history.jsonl: the same events as Jepsen's
// tools read them, one map a line.
func WriteEDN(dir string) error {
	events, err := ReadEvents(dir)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, EDNFile))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, e := range events {
		fmt.Fprintln(w, e.EDN())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// EDN is the event as Jepsen writes it.
func (e Event) EDN() string {
	process := strconv.Itoa(e.Process)
	value := map[string]any{"node": e.Node, "key": e.Key, "tag": int64(e.Tag), "cmd": e.Cmd, "reply": e.Reply}
	if e.Process == Nemesis {
		process = ":nemesis"
		value = map[string]any{"phase": e.Phase, "targets": e.Targets, "detail": e.Detail}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{:type :%s, :f :%s, :process %s, :time %d, :index %d, :value {", e.Type, e.F, process, e.Time, e.Index)
	sep := ""
	for _, k := range []string{"node", "key", "tag", "cmd", "reply", "phase", "targets", "detail"} {
		switch v := value[k].(type) {
		case nil:
			continue
		case string:
			if v == "" {
				continue
			}
		case int64:
			if v == 0 {
				continue
			}
		case []string:
			if v == nil {
				continue
			}
		}
		fmt.Fprintf(&b, "%s:%s %s", sep, k, edn(value[k]))
		sep = " "
	}
	b.WriteString("}")
	if e.Error != "" {
		fmt.Fprintf(&b, ", :error %s", edn(e.Error))
	}
	b.WriteString("}")
	return b.String()
}

func edn(v any) string {
	switch x := v.(type) {
	case int64:
		return strconv.FormatInt(x, 10)
	case []string:
		words := make([]string, len(x))
		for i := range x {
			words[i] = edn(x[i])
		}
		return "[" + strings.Join(words, " ") + "]"
	case []any:
		words := make([]string, len(x))
		for i := range x {
			words[i] = edn(x[i])
		}
		return "[" + strings.Join(words, " ") + "]"
	case string:
		return ednString(x)
	}
	return "nil"
}

// ednString quotes as EDN does: Go's \x escapes are none of its own.
func ednString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || r > 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r&0xffff)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
