package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// patience is how long a client waits for a reply: more than the time in which a
// node promises one.
const patience = 3 * time.Second

// replyError is a reply that is an error: the text without the dash.
type replyError string

func (e replyError) Error() string { return string(e) }

// conn is a connection that speaks RESP2.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func newConn(c net.Conn) *conn { return &conn{c, bufio.NewReader(c)} }

// appendCommand appends a command as clients send it.
func appendCommand(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(a), a)
	}
	return dst
}

// Do sends one command and reads its reply. A reply that is an error is returned as
// one.
func (c *conn) Do(patience time.Duration, args ...string) (any, error) {
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(appendCommand(nil, args...)); err != nil {
		return nil, err
	}
	return c.reply()
}

// reply reads one reply: int64, string, nil or []any of these.
func (c *conn) reply() (any, error) {
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	kind, rest, ok := line[0], string(bytes.TrimSuffix(line[1:], []byte("\r\n"))), bytes.HasSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, fmt.Errorf("reply %q does not end in CRLF", line)
	}
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, replyError(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$', '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < -1 || n > 1<<20 {
			return nil, fmt.Errorf("reply %q has no length", line)
		}
		if n < 0 {
			return nil, nil
		}
		if kind == '$' {
			b := make([]byte, n+2)
			if _, err := io.ReadFull(c.in, b); err != nil {
				return nil, err
			}
			return string(b[:n]), nil
		}
		all := make([]any, n)
		for i := range all {
			if all[i], err = c.reply(); err != nil {
				var inner replyError
				if !errors.As(err, &inner) {
					return nil, err
				}
				all[i] = "-" + string(inner)
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("reply %q is no RESP", line)
}
