package history

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// WriteEDN writes the run for Jepsen's tools, one operation a line: history.edn with
// all events, set.edn and counter/*.edn with those that their checkers set and counter
// understand. See FORMAT.md.
func WriteEDN(dir string) error {
	events, err := ReadEvents(dir)
	if err != nil {
		return err
	}
	text := make([]string, len(events))
	for i, e := range events {
		text[i] = e.EDN()
	}
	if err := writeText(filepath.Join(dir, EDNFile), text); err != nil {
		return err
	}
	if err := writeCounters(dir, events); err != nil {
		return err
	}
	return writeSet(dir, events)
}

func writeText(file string, text []string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, line := range text {
		w.WriteString(line)
		w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// EDN is the event as Jepsen writes it.
func (e Event) EDN() string {
	fields := &fields{}
	fields.text("node", e.Node)
	fields.number("ns", int64(e.NS))
	fields.text("key", e.Key)
	if e.Tag != 0 {
		fields.add("tag", strconv.FormatUint(e.Tag, 10))
	}
	fields.words("cmd", e.Cmd)
	if e.Reply != nil {
		fields.add("reply", edn(e.Reply))
	}
	fields.text("phase", e.Phase)
	fields.words("targets", e.Targets)
	fields.text("detail", e.Detail)
	return e.operation(":"+e.F, "{"+fields.b.String()+"}")
}

// operation is the event as an operation with another function and value.
func (e Event) operation(f, value string) string {
	process := strconv.Itoa(e.Process)
	if e.Process == Nemesis {
		process = ":nemesis"
	}
	s := fmt.Sprintf("{:type :%s, :f %s, :process %s, :time %d, :index %d, :value %s", e.Type, f, process, e.Time, e.Index, value)
	if e.Error != "" {
		s += ", :error " + ednString(e.Error)
	}
	return s + "}"
}

// fields is the inside of a map. What is zero is left out.
type fields struct{ b strings.Builder }

func (f *fields) add(name, value string) {
	if f.b.Len() > 0 {
		f.b.WriteByte(' ')
	}
	f.b.WriteString(":" + name + " " + value)
}

func (f *fields) text(name, value string) {
	if value != "" {
		f.add(name, ednString(value))
	}
}

func (f *fields) number(name string, value int64) {
	if value != 0 {
		f.add(name, strconv.FormatInt(value, 10))
	}
}

func (f *fields) words(name string, value []string) {
	if value != nil {
		f.add(name, edn(value))
	}
}

// edn writes a reply, or words.
func edn(v any) string {
	var all []string
	switch x := v.(type) {
	case int64:
		return strconv.FormatInt(x, 10)
	case string:
		return ednString(x)
	case []string:
		for _, s := range x {
			all = append(all, ednString(s))
		}
	case []any:
		for _, y := range x {
			all = append(all, edn(y))
		}
	default:
		return "nil"
	}
	return "[" + strings.Join(all, " ") + "]"
}

// ednString quotes as EDN does: Go's \x and \U are none of its own.
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
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
