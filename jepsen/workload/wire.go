package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// replyError is a reply that is an error: the text without the dash.
type replyError string

func (e replyError) Error() string { return string(e) }

// code is the error's first word.
func (e replyError) code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// conn is a connection that speaks RESP2. It trusts nobody's reply: what is none, or is
// too long, is an error and no surprise.
type conn struct {
	net.Conn
	in *bufio.Reader
}

// Bounds of a reply.
const (
	maxLine  = 16 << 10
	maxBulk  = 1 << 20
	maxArray = 1 << 12
	maxDepth = 3
)

func newConn(c net.Conn) *conn { return &conn{c, bufio.NewReaderSize(c, maxLine)} }

// appendCommand appends a command as clients send it.
func appendCommand(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(a), a)
	}
	return dst
}

// do sends one command and reads its reply. A reply that is an error is returned as
// one.
func (c *conn) do(patience time.Duration, args ...string) (any, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := c.Write(appendCommand(nil, args...)); err != nil {
		return nil, err
	}
	return c.reply(maxDepth)
}

// reply reads one reply: an int64, a string, nil, or an array of these. An error inside
// an array is a string with its dash.
func (c *conn) reply(depth int) (any, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		if rest != "" {
			return nil, replyError(rest)
		}
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$', '*':
		return c.sized(kind, rest, depth)
	}
	return nil, fmt.Errorf("%q is no reply", line)
}

// sized reads what follows the length of a bulk string or an array.
func (c *conn) sized(kind byte, rest string, depth int) (any, error) {
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil || n < -1 || kind == '$' && n > maxBulk || kind == '*' && (n > maxArray || depth == 0):
		return nil, fmt.Errorf("reply %c%s: its length is none, or too much", kind, rest)
	case n < 0:
		return nil, nil
	case kind == '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, b); err != nil {
			return nil, err
		}
		if string(b[n:]) != "\r\n" {
			return nil, fmt.Errorf("reply %c%s: CRLF is missing behind it", kind, rest)
		}
		return string(b[:n]), nil
	}
	all := make([]any, n)
	for i := range all {
		all[i], err = c.reply(depth - 1)
		var inner replyError
		if errors.As(err, &inner) {
			all[i] = "-" + string(inner)
		} else if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// line reads a line that is not empty, without its CRLF.
func (c *conn) line() (string, error) {
	b, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("reply %.20q…: a line of more than %d bytes", b, maxLine)
	}
	if err != nil {
		return "", err
	}
	line, ok := strings.CutSuffix(string(b), "\r\n")
	if !ok || line == "" {
		return "", fmt.Errorf("%q is no reply", b)
	}
	return line, nil
}
