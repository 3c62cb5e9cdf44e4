package resp

import (
	"bytes"
	"fmt"
)

// split cuts an inline command into its arguments, as Redis does: separated by
// blanks, "…" with the escapes \n \r \t \b \a \xHH, '…' with \'. A closing quote
// must be followed by a blank or the end. The line is unquoted in place: an
// argument is never longer than what it was written as.
func (p *parser) split(line []byte, args [][]byte) ([][]byte, error) {
	for i := 0; ; {
		for i < len(line) && blank(line[i]) {
			i++
		}
		if i == len(line) {
			return args, nil
		}
		start, w := i, i
		for i < len(line) && !blank(line[i]) {
			q := line[i]
			if q != '"' && q != '\'' {
				line[w] = q
				w++
				i++
				continue
			}
			n, end, ok := unquote(line[i+1:], line[w:w:len(line)], q)
			if i += 1 + end; !ok || i < len(line) && !blank(line[i]) {
				return args, protocolError("unbalanced quotes in request")
			}
			w += n
		}
		switch {
		case len(args) == p.args:
			return args, protocolError(fmt.Sprintf("too many arguments in inline request: more than resp.max_args = %d", p.args))
		case w-start > p.argBytes:
			return args, protocolError(fmt.Sprintf("too big argument in inline request: more than resp.max_arg_bytes = %d", p.argBytes))
		}
		args = append(args, line[start:w:w])
	}
}

// isHTTP says that the last word of a line is a version of HTTP: a browser was made to
// send here, or a proxy or a scanner takes this port for another.
func isHTTP(line []byte) bool {
	line = bytes.TrimRight(line, " \t\r")
	return bytes.HasPrefix(line[bytes.LastIndexAny(line, " \t")+1:], []byte("HTTP/"))
}

// unquote copies src up to the closing quote q to dst, which may lie before src
// in the same array. n is the number of bytes written, end the index behind the
// quote; without a closing quote ok is false.
func unquote(src, dst []byte, q byte) (n, end int, ok bool) {
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == q:
			return len(dst), i + 1, true
		case c == '\\' && q == '\'' && i+1 < len(src) && src[i+1] == '\'':
			i++
			c = '\''
		case c == '\\' && q == '"' && i+1 < len(src):
			i++
			if c = src[i]; c == 'x' && i+2 < len(src) && hexDigit(src[i+1]) >= 0 && hexDigit(src[i+2]) >= 0 {
				c = byte(hexDigit(src[i+1])<<4 | hexDigit(src[i+2]))
				i += 2
				break
			}
			switch c {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'a':
				c = '\a'
			}
		}
		dst = append(dst, c)
	}
	return len(dst), len(src), false
}

func blank(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r' || c == 0
}

// hexDigit is the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
