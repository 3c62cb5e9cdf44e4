package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/redcon"
	"pgregory.net/rapid"
)

var testBounds = bounds{args: 1024, argBytes: 64 << 10, requestBytes: 1 << 20}

// frames is what a parser makes of input that arrives in pieces: the commands,
// and the error that ended it (nil if none). cuts are the lengths of the pieces;
// the last takes the rest.
func frames(b bounds, input []byte, cuts ...int) (cmds [][]string, err error) {
	p := parser{bounds: b}
	p.begin()
	buf, from := bytes.Clone(input), 0
	for to := 0; ; cuts = cuts[min(1, len(cuts)):] {
		if len(cuts) > 0 {
			to = min(to+cuts[0], len(buf))
		} else {
			to = len(buf)
		}
		for {
			args, n, err := p.next(buf[from:to:to], nil)
			if err == errIncomplete {
				break
			}
			if err != nil {
				return cmds, err
			}
			if len(args) > 0 {
				cmds = append(cmds, texts(args))
			}
			from += n
		}
		if to == len(buf) {
			return cmds, nil
		}
	}
}

func texts(args [][]byte) []string {
	s := make([]string, len(args))
	for i, a := range args {
		s[i] = string(a)
	}
	return s
}

func TestParserFrames(t *testing.T) {
	for _, c := range []struct {
		in   string
		want [][]string
	}{
		{"*1\r\n$4\r\nPING\r\n", [][]string{{"PING"}}},
		{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n", [][]string{{"ECHO", ""}, {"PING"}}},
		{"*1\r\n$11\r\n*1\r\n$1\r\nx\r\n\r\n", [][]string{{"*1\r\n$1\r\nx\r\n"}}},
		{"*1\r\n$4\r\n\x00\r\n\xff\r\n", [][]string{{"\x00\r\n\xff"}}},
		{"*0\r\n*-1\r\n*-10\r\n\r\n\n  \r\nPING\r\n", [][]string{{"PING"}}},
		{"PING\n", [][]string{{"PING"}}},
		{" \tECHO  a\t b \r\n", [][]string{{"ECHO", "a", "b"}}},
		{`SET "a b" 'c d' e"f g"` + "\r\n", [][]string{{"SET", "a b", "c d", "ef g"}}},
		{`ECHO "\x41\n\r\t\b\a\\\"\q\xZZ" '\'\n'` + "\n", [][]string{{"ECHO", "A\n\r\t\b\a\\\"qxZZ", `'\n`}}},
		{`AUTH ""` + "\r\n", [][]string{{"AUTH", ""}}},
	} {
		got, err := frames(testBounds, []byte(c.in))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

// Texts are those of Redis up to the colon or the end; bounds are named behind.
func TestParserRefuses(t *testing.T) {
	small := bounds{args: 4, argBytes: 16, requestBytes: 64}
	for _, c := range []struct{ in, want string }{
		// A bulk length near 2^63, an array count of 9·10^18.
		{"*1\r\n$9223372036854775807\r\n", "invalid bulk length: more than resp.max_arg_bytes = 16"},
		{"*9000000000000000000\r\n", "invalid multibulk length: more than resp.max_args = 4"},
		{"*1\r\n$9223372036854775808\r\n", "invalid bulk length: more"},
		{"*1\r\n$18446744073709551617\r\n", "invalid bulk length: more"}, // 2^64 + 1
		{"*1\r\n$" + strings.Repeat("9", 100), "too big bulk count string"},
		{"*1\r\n$" + strings.Repeat("0", 100) + "\r\n", "invalid bulk length"},
		{"*" + strings.Repeat("1", 100) + "\r\n", "too big mbulk count string"},
		{"*2147483648\r\n", "invalid multibulk length"},
		{"*5\r\n", "invalid multibulk length: more"},
		{"*abc\r\n", "invalid multibulk length"},
		{"*\r\n", "invalid multibulk length"},
		{"*-\r\n", "invalid multibulk length"},
		{"*-0\r\n", "invalid multibulk length"},
		{"*+1\r\n", "invalid multibulk length"},
		{"*01\r\n", "invalid multibulk length"},
		{"* 1\r\n", "invalid multibulk length"},
		{"*1\n", "invalid multibulk length"},
		{"*1\rX", "invalid multibulk length"},
		{"*1\r\nPING\r\n", "expected '$', got 'P'"},
		{"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"},
		{"*1\r\n\x00", "expected '$', got ' '"},
		{"*1\r\n$-1\r\n", "invalid bulk length"},
		{"*1\r\n$-0\r\n", "invalid bulk length"},
		{"*1\r\n$01\r\n", "invalid bulk length"},
		{"*1\r\n$abc\r\n", "invalid bulk length"},
		{"*1\r\n$17\r\n", "invalid bulk length: more"},
		{"*1\r\n$4\r\nPINGab", "expected CRLF behind a bulk"},
		{"*1\r\n$4\r\nPING\rb", "expected CRLF behind a bulk"},
		{"*4\r\n" + strings.Repeat("$16\r\naaaaaaaaaaaaaaaa\r\n", 4), "too big request: more than resp.max_request_bytes = 64"},
		{"PING \"x\r\n", "unbalanced quotes in request"},
		{"PING 'x\r\n", "unbalanced quotes in request"},
		{"PING \"x\"y\r\n", "unbalanced quotes in request"},
		{strings.Repeat("a", 64), "too big inline request"},
		{strings.Repeat("a ", 40) + "\r\n", "too big inline request"},
		{"a b c d e\r\n", "too many arguments in inline request: more than resp.max_args = 4"},
		{"ECHO " + strings.Repeat("a", 17) + "\r\n", "too big argument in inline request: more than resp.max_arg_bytes = 16"},
	} {
		for _, cut := range []int{len(c.in), 1} {
			cmds, err := frames(small, []byte(c.in), slices.Repeat([]int{cut}, len(c.in))...)
			if pe := protocolError(""); !errors.As(err, &pe) || !strings.HasPrefix(string(pe), c.want) {
				t.Errorf("%q in pieces of %d: %q, %v; want %q", c.in, cut, cmds, err, c.want)
			}
		}
	}
}

// The bounds themselves are allowed.
func TestParserTakesWhatIsAtTheBounds(t *testing.T) {
	small := bounds{args: 3, argBytes: 16, requestBytes: 64}
	for _, in := range []string{
		"*3\r\n" + strings.Repeat("$1\r\na\r\n", 3),
		"*1\r\n$16\r\n" + strings.Repeat("a", 16) + "\r\n",
		"*3\r\n" + strings.Repeat("$13\r\naaaaaaaaaaaaa\r\n", 3) + "\r\n", // 64 bytes without the empty line
		"a b c\r\n",
		"ECHO " + strings.Repeat("a", 16) + "\n",
	} {
		if cmds, err := frames(small, []byte(in)); err != nil || len(cmds) != 1 {
			t.Errorf("%q (%d bytes): %q, %v", in, len(in), cmds, err)
		}
	}
}

// stream draws a pipeline of commands, good ones mostly.
func stream(t *rapid.T) []byte {
	arg := rapid.OneOf(rapid.StringMatching(`[a-z"' \\]{0,8}`), rapid.StringN(0, 40, 200))
	piece := rapid.OneOf(
		rapid.Map(rapid.SliceOfN(arg, 1, 6), func(a []string) []byte { return commandBytes(a...) }),
		rapid.Map(rapid.SampledFrom([]string{"PING\r\n", "\r\n", "*0\r\n", "*-1\r\n", "ECHO \"a b\" 'c'\n", "x\n", "*1\r\n$1", "\"", "*x"}),
			func(s string) []byte { return []byte(s) }),
	)
	return slices.Concat(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces")...)
}

func TestAnySplitGivesTheSameCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := stream(t)
		cuts := rapid.SliceOf(rapid.IntRange(1, 30)).Draw(t, "cuts")
		sameInPieces(t, input, cuts)
		sameInPieces(t, input, slices.Repeat([]int{1}, len(input)))
	})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func sameInPieces(t failer, input []byte, cuts []int) {
	t.Helper()
	want, wantErr := frames(testBounds, input)
	got, err := frames(testBounds, input, cuts...)
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%q cut by %v:\n%q, %v\nin one piece:\n%q, %v", input, cuts, got, err, want, wantErr)
	}
}

// sameAsRedcon compares with redcon's reader, on what both accept: arrays of
// bulk strings that are whole. (redcon must not see what we refuse: some of it
// kills it.)
func sameAsRedcon(t failer, input []byte) {
	t.Helper()
	ours, err := frames(testBounds, input)
	if err != nil {
		return
	}
	p := parser{bounds: testBounds}
	p.begin()
	for rest := input; len(rest) > 0; {
		if rest[0] != '*' {
			return // inline, which next would unquote in place
		}
		_, n, err := p.next(rest, nil)
		if err != nil || rest[1] == '0' || rest[1] == '-' {
			return // incomplete or empty
		}
		rest = rest[n:]
	}
	rd := redcon.NewReader(bytes.NewReader(input))
	for i, want := range ours {
		cmd, err := rd.ReadCommand()
		if err != nil {
			t.Fatalf("%q: redcon fails at command %d with %v, we read %q", input, i, err, want)
		}
		if got := texts(cmd.Args); !slices.Equal(got, want) {
			t.Fatalf("%q: command %d is %q to redcon, %q to us", input, i, got, want)
		}
	}
	if cmd, err := rd.ReadCommand(); err != io.EOF {
		t.Fatalf("%q: redcon reads on: %q, %v", input, cmd.Args, err)
	}
}

func TestRedconReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { sameAsRedcon(t, stream(t)) })
}

// A request of 80,000 tiny arguments that arrives byte by byte is looked at
// once per byte, not once per byte for each byte before it.
func TestParsingIsLinearInTheInput(t *testing.T) {
	b := bounds{args: 100000, argBytes: 1 << 10, requestBytes: 1 << 20}
	spend := func(n int) time.Duration {
		input := append(header(nil, '*', n), bytes.Repeat([]byte("$1\r\na\r\n"), n)...)
		p := parser{bounds: b}
		p.begin()
		start := time.Now()
		for i := range len(input) - 1 {
			if _, _, err := p.next(input[:i+1], nil); err != errIncomplete {
				t.Fatal(err)
			}
		}
		args, used, err := p.next(input, nil)
		if err != nil || used != len(input) || len(args) != n {
			t.Fatalf("%d arguments, %d bytes, %v", len(args), used, err)
		}
		return time.Since(start)
	}
	spend(1000)
	small, large := spend(10000), spend(80000)
	if large > 40*small+50*time.Millisecond { // quadratic: 64 times and seconds
		t.Errorf("10,000 arguments took %v, 80,000 %v", small, large)
	}
}

func TestInlineIsLinearInTheInput(t *testing.T) {
	p := parser{bounds: testBounds}
	p.begin()
	input := append(bytes.Repeat([]byte("a"), 60<<10), "\r\n"...)
	for i := range len(input) - 1 {
		if _, _, err := p.next(input[:i+1], nil); err != errIncomplete || p.at != i+1 {
			t.Fatalf("at byte %d: %v, %d bytes done with", i, err, p.at)
		}
	}
	if args, n, err := p.next(input, nil); len(args) != 1 || n != len(input) || err != nil {
		t.Fatal(len(args), n, err)
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"*1\r\n$9223372036854775807\r\n", "*9000000000000000000\r\n", "*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n", "PING\r\n", "ECHO \"a\\x41\" 'b'\r\n",
		"*0\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n", "*1\r\n$-1\r\n", "*1\r\n*1\r\n", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", "*1\r\n$1\r\na\r",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Add([]byte("\"*\rb\"\r\n"), uint8(3)) // an inline command that would begin with '*' once unquoted in place
	addKillers(f)
	f.Fuzz(func(t *testing.T, input []byte, how uint8) {
		var cuts []int
		for _, p := range pieces(input, how) {
			cuts = append(cuts, len(p))
		}
		sameInPieces(t, input, cuts)
		sameAsRedcon(t, input)
		checkWork(t, testBounds, input, how)
	})
}
