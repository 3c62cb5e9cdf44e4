package workload

import (
	"bufio"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func read(text string) (any, error) {
	c := &conn{in: bufio.NewReaderSize(strings.NewReader(text), maxLine)}
	return c.reply(maxDepth)
}

func TestReplies(t *testing.T) {
	for text, want := range map[string]any{
		"+OK\r\n":                            "OK",
		":-9223372036854775808\r\n":          int64(math.MinInt64),
		":9223372036854775807\r\n":           int64(math.MaxInt64),
		"$4\r\na\r\nb\r\n":                   "a\r\nb",
		"$0\r\n\r\n":                         "",
		"$-1\r\n":                            nil,
		"*-1\r\n":                            nil,
		"*0\r\n":                             []any{},
		"*3\r\n:1\r\n*1\r\n+x\r\n-ERR y\r\n": []any{int64(1), []any{"x"}, "-ERR y"},
	} {
		if got, err := read(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	_, err := read("-INDOUBT perhaps\r\n")
	var e replyError
	if !errors.As(err, &e) || e.code() != "INDOUBT" || e != "INDOUBT perhaps" {
		t.Errorf("%v", err)
	}
}

// A node that is out of its mind must not take the harness with it.
func TestWhatIsNoReplyIsAnErrorAndNoErrorReply(t *testing.T) {
	for _, text := range []string{
		"", "\r\n", "+OK\n", "+OK", "?\r\n", ":\r\n", ":1.5\r\n", ":9223372036854775808\r\n", "$x\r\n", "$-2\r\n", "$1048577\r\n", "$3\r\nab\r\n", "$2\r\nabcd",
		"*4097\r\n", "*9223372036854775807\r\n", "*1\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "+" + strings.Repeat("x", maxLine) + "\r\n",
	} {
		_, err := read(text)
		if said := replyError(""); err == nil || errors.As(err, &said) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}
