package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/redcon"

	"limitd/algo"
)

// proto is the protocol version of a connection: 2 or 3. The types that differ
// are its methods; the others are redcon's Append functions.
type proto uint8

func header(dst []byte, t byte, n int) []byte {
	start := len(dst)
	dst = redcon.AppendArray(dst, n)
	dst[start] = t
	return dst
}

// mapOf begins a map of n pairs: in RESP2 a flat array.
func (p proto) mapOf(dst []byte, n int) []byte {
	if p == 3 {
		return header(dst, '%', n)
	}
	return redcon.AppendArray(dst, 2*n)
}

// set begins a set of n elements: in RESP2 an array.
func (p proto) set(dst []byte, n int) []byte {
	if p == 3 {
		return header(dst, '~', n)
	}
	return redcon.AppendArray(dst, n)
}

// null is the absence of a string.
func (p proto) null(dst []byte) []byte {
	if p == 3 {
		return append(dst, "_\r\n"...)
	}
	return redcon.AppendNull(dst)
}

// text is a text meant for people: in RESP2 a bulk string.
func (p proto) text(dst []byte, s string) []byte {
	if p == 3 {
		dst = header(dst, '=', len(s)+4)
		dst = append(dst, "txt:"...)
		dst = append(dst, s...)
		return append(dst, "\r\n"...)
	}
	return redcon.AppendBulkString(dst, s)
}

// appendPair renders a name and its value.
func appendPair(dst []byte, name, value string) []byte {
	return redcon.AppendBulkString(redcon.AppendBulkString(dst, name), value)
}

func appendIntPair(dst []byte, name string, value int64) []byte {
	return redcon.AppendInt(redcon.AppendBulkString(dst, name), value)
}

// quoteMax bounds what an error repeats of an argument, in bytes.
const quoteMax = 128

// quoted is an argument as an error may repeat it: bounded, control characters as blanks.
func quoted(b []byte) string {
	q := bytes.Clone(b[:min(len(b), quoteMax)])
	for i, c := range q {
		if c < ' ' || c == 0x7f {
			q[i] = ' '
		}
	}
	return string(q)
}

// appendThrottle renders the reply of CL.THROTTLE: limited, limit, remaining,
// retry_after and reset_after in seconds, rounded up; retry_after is -1 when the
// call was allowed and when it can never pass.
func appendThrottle(dst []byte, v *algo.Verdict) []byte {
	retry := int64(-1)
	if v.Allowed {
		dst = append(dst, "*5\r\n:0\r\n"...)
	} else {
		dst = append(dst, "*5\r\n:1\r\n"...)
		if v.RetryAfter != algo.Never {
			retry = algo.CeilSeconds(v.RetryAfter)
		}
	}
	dst = redcon.AppendInt(dst, v.Limit)
	dst = redcon.AppendInt(dst, v.Remaining)
	dst = redcon.AppendInt(dst, retry)
	return redcon.AppendInt(dst, algo.CeilSeconds(v.ResetAfter))
}

// ceilMS turns ns into ms, rounded up.
func ceilMS(ns int64) int64 {
	ms := ns / 1e6
	if ns%1e6 > 0 {
		ms++
	}
	return ms
}

// Errors of Redis, by its words.

func errArity(name string) string {
	return fmt.Sprintf("ERR wrong number of arguments for '%s' command", name)
}

func errSubcommand(name string, sub []byte) string {
	return fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", quoted(sub), strings.ToUpper(name))
}

// errUnknown repeats the name and the first arguments, as Redis does, the blank
// at the end included.
func errUnknown(args [][]byte) string {
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= quoteMax {
			break
		}
		a = a[:min(len(a), quoteMax-b.Len())]
		fmt.Fprintf(&b, "'%s' ", quoted(a))
	}
	return fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", quoted(args[0]), b.String())
}

const (
	errSyntax  = "ERR syntax error"
	errInteger = "ERR value is not an integer or out of range"
)

// errSyntaxOf is errSyntax for commands that return an error.
var errSyntaxOf = errors.New(errSyntax[len("ERR "):])
