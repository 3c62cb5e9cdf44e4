package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
)

// readReply takes one RESP2 reply. first is its first integer, 0 if it has none; failed
// is the text of an error reply, at the top or within.
func readReply(r *bufio.Reader) (first int64, failed string, err error) {
	var p parse
	err = p.value(r)
	return p.first, p.failed, err
}

type parse struct {
	first  int64
	seen   bool // first is set
	failed string
}

var errReply = errors.New("not a RESP2 reply")

func (p *parse) value(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return fmt.Errorf("%w: %q", errReply, line)
	}
	kind, line := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return nil
	case '-':
		if p.failed == "" {
			p.failed = string(bytes.Clone(line))
		}
		return nil
	}
	n, err := number(line)
	if err != nil {
		return err
	}
	switch kind {
	case ':':
		if !p.seen {
			p.first, p.seen = n, true
		}
	case '$':
		if n >= 0 {
			_, err = r.Discard(int(n) + 2)
		}
	case '*':
		for ; n > 0 && err == nil; n-- {
			err = p.value(r)
		}
	default:
		return fmt.Errorf("%w: %c%s", errReply, kind, line)
	}
	return err
}

func number(b []byte) (n int64, err error) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 {
		return 0, fmt.Errorf("%w: %q is no number", errReply, b)
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: %q is no number", errReply, b)
		}
		n = 10*n + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, nil
}
