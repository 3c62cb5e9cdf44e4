package resp

import (
	"bytes"
	"errors"
	"fmt"
)

// maxLine bounds an inline command, in bytes, as Redis does.
const maxLine = 64 << 10

// maxDigits is above the length of any number that a length line may hold. It
// bounds what is read again when such a line arrives in pieces.
const maxDigits = 20

// protocolError ends a connection. Its text goes to the client behind "-ERR ".
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// errIncomplete says that more bytes are needed.
var errIncomplete = errors.New("incomplete")

// bounds of what a parser accepts, see [Config].
type bounds struct{ args, argBytes, requestBytes int }

// span is an argument: where it begins in the command, and its length.
type span struct{ off, len int32 }

// parser frames commands: arrays of bulk strings, or inline commands. It keeps
// its place in a command that is not whole yet, so that the work is linear in
// the input however the input is cut. It holds no bytes itself.
type parser struct {
	bounds
	at    int    // bytes of the command that are done with
	left  int    // arguments to come; 0: the command has not begun
	bulk  int    // length of the argument being read; -1: its length line is next
	spans []span // arguments so far

	strict bool // the client has not said who it is: less is accepted
}

// begin makes the parser ready for a new command.
func (p *parser) begin() {
	p.at, p.left, p.bulk = 0, 0, -1
	p.spans = p.spans[:0]
}

// next takes one command from the front of b, whose first byte must be the first
// of the command, and which must only have grown if the call before was
// incomplete. It appends the arguments to args, aliasing b, and returns the
// bytes taken. No arguments mean an empty command, to be ignored. Inline
// arguments are unquoted in place.
//
// The error is errIncomplete, a protocolError, or errAlien for a request line of HTTP.
func (p *parser) next(b []byte, args [][]byte) ([][]byte, int, error) {
	if len(b) == 0 {
		return args, 0, errIncomplete
	}
	if p.left == 0 {
		if b[0] != '*' {
			return p.inline(b, args)
		}
		n, end, err := p.lengthLine(b, 1, "multibulk length", "mbulk count string")
		if err != nil {
			return args, 0, err
		}
		if p.strict && n > strictArgs {
			return args, 0, protocolError("unauthenticated multibulk length")
		}
		if n > p.args {
			return args, 0, protocolError(fmt.Sprintf("invalid multibulk length: more than resp.max_args = %d", p.args))
		}
		if n <= 0 {
			return args, end, nil
		}
		p.at, p.left = end, n
	}
	for p.left > 0 {
		if p.bulk < 0 {
			if p.at >= len(b) {
				return args, 0, p.more(b)
			}
			if c := b[p.at]; c != '$' {
				return args, 0, protocolError(fmt.Sprintf("expected '$', got '%c'", printable(c)))
			}
			n, end := shortLine(b, p.at+1)
			var err error
			if end == 0 {
				n, end, err = p.lengthLine(b, p.at+1, "bulk length", "bulk count string")
			}
			switch {
			case err != nil:
				return args, 0, err
			case n < 0:
				return args, 0, protocolError("invalid bulk length")
			case p.strict && n > strictArgBytes:
				return args, 0, protocolError("unauthenticated bulk length")
			case n > p.argBytes:
				return args, 0, protocolError(fmt.Sprintf("invalid bulk length: more than resp.max_arg_bytes = %d", p.argBytes))
			case end+n+2 > p.requestBytes:
				return args, 0, p.tooLarge()
			}
			p.at, p.bulk = end, n
		}
		end := p.at + p.bulk
		if end+2 > len(b) {
			return args, 0, p.more(b)
		}
		if b[end] != '\r' || b[end+1] != '\n' {
			return args, 0, protocolError("expected CRLF behind a bulk of the announced length")
		}
		p.spans = append(p.spans, span{int32(p.at), int32(p.bulk)})
		p.at, p.bulk = end+2, -1
		p.left--
	}
	n := p.at
	for _, s := range p.spans {
		args = append(args, b[s.off:s.off+s.len:s.off+s.len])
	}
	p.begin()
	return args, n, nil
}

// shortLine is lengthLine for what nearly all lines are: one or two digits. end
// is 0 for all others.
func shortLine(b []byte, i int) (n, end int) {
	if i+4 > len(b) {
		return 0, 0
	}
	l := b[i : i+4]
	tens, ones := l[0]-'0', l[1]-'0'
	switch {
	case tens > 9:
	case l[1] == '\r' && l[2] == '\n':
		return int(tens), i + 3
	case tens > 0 && ones <= 9 && l[2] == '\r' && l[3] == '\n':
		return 10*int(tens) + int(ones), i + 4
	}
	return 0, 0
}

// lengthLine reads a decimal number at b[i:] that ends with CRLF, as Redis
// does: no plus sign, no leading zeros, no blanks. end is the index behind the
// line. A number below zero is returned as -1.
func (p *parser) lengthLine(b []byte, i int, what, line string) (n, end int, err error) {
	start, neg := i, false
	if i < len(b) && b[i] == '-' {
		neg = true
		i++
	}
	first := i
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		if i-start >= maxDigits {
			return 0, 0, protocolError("too big " + line)
		}
		if n < 1<<31 { // above any bound; more digits cannot make it smaller
			n = n*10 + int(c)
		}
		if b[first] == '0' && (i > first || neg) {
			return 0, 0, protocolError("invalid " + what)
		}
	}
	switch {
	case i >= len(b), b[i] == '\r' && i > first && i+1 == len(b):
		return 0, 0, p.more(b)
	case b[i] != '\r', i == first, b[i+1] != '\n':
		return 0, 0, protocolError("invalid " + what)
	case neg:
		n = -1
	}
	return n, i + 2, nil
}

// inline reads a command that is one line of blank separated arguments.
func (p *parser) inline(b []byte, args [][]byte) ([][]byte, int, error) {
	limit := min(maxLine, p.requestBytes)
	nl := bytes.IndexByte(b[p.at:], '\n')
	if nl < 0 {
		if p.at = len(b); p.at >= limit {
			return args, 0, protocolError("too big inline request")
		}
		return args, 0, errIncomplete
	}
	end := p.at + nl
	if end > limit {
		return args, 0, protocolError("too big inline request")
	}
	p.begin()
	if isHTTP(b[:end]) {
		return args, 0, errAlien
	}
	args, err := p.split(b[:end], args)
	return args, end + 1, err
}

// more says that the command needs more bytes, or that it may not have them.
func (p *parser) more(b []byte) error {
	if len(b) >= p.requestBytes {
		return p.tooLarge()
	}
	return errIncomplete
}

func (p *parser) tooLarge() error {
	return protocolError(fmt.Sprintf("too big request: more than resp.max_request_bytes = %d", p.requestBytes))
}

// printable makes c fit for an error line.
func printable(c byte) byte {
	if c < ' ' || c > '~' {
		return ' '
	}
	return c
}
