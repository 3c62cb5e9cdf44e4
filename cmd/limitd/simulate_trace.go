package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// traceCall is a line of a trace: a call of cost units at a time.
type traceCall struct {
	line int
	text string // the time as it was written
	at   int64  // ns since 1970
	cost int64  // 0 is a peek, below 0 a refund
}

// maxTraceLine is the longest line, in bytes. A line that is longer is no call.
const maxTraceLine = 1024

// maxTraceCost is the largest cost, either way.
const maxTraceCost = 1 << 61

// traceReader reads a trace, line by line: time[,cost], with a header if need be.
// It keeps one line in memory.
type traceReader struct {
	name string // of the file, for errors
	scan *bufio.Scanner
	line int
	last traceCall
}

func newTraceReader(name string, r io.Reader) *traceReader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, maxTraceLine+2), maxTraceLine+2)
	return &traceReader{name: name, scan: s}
}

// next is the next call; io.EOF behind the last one. Other errors name the line.
func (t *traceReader) next() (traceCall, error) {
	for t.scan.Scan() {
		t.line++
		text := t.scan.Text()
		if t.line == 1 {
			text = strings.TrimPrefix(text, "\ufeff") // spreadsheets begin files with one
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		fields := strings.Split(text, ",")
		for i, f := range fields {
			fields[i] = unquoted(strings.TrimSpace(f))
		}
		if t.line == 1 && isHeader(fields) {
			continue
		}
		return t.call(fields)
	}
	switch err := t.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		t.line++
		return traceCall{}, t.bad("the line is longer than %d bytes", maxTraceLine)
	case err != nil:
		return traceCall{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return traceCall{}, io.EOF
}

func (t *traceReader) bad(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", t.name, t.line, fmt.Sprintf(format, args...))
}

func unquoted(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// isHeader says that the fields are names: each begins with a letter and has no digit.
func isHeader(fields []string) bool {
	for _, f := range fields {
		if f == "" || !unicode.IsLetter([]rune(f)[0]) || strings.ContainsAny(f, "0123456789") {
			return false
		}
	}
	return true
}

func (t *traceReader) call(fields []string) (traceCall, error) {
	c := traceCall{line: t.line, text: fields[0], cost: 1}
	if len(fields) > 2 {
		return c, t.bad("%d fields; a line is time or time,cost", len(fields))
	}
	var err error
	if c.at, err = traceTime(c.text); err != nil {
		return c, t.bad("time %q is %v", c.text, err)
	}
	if len(fields) == 2 && fields[1] != "" {
		c.cost, err = strconv.ParseInt(fields[1], 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange), err == nil && (c.cost > maxTraceCost || c.cost < -maxTraceCost):
			return c, t.bad("cost %q is out of range: at most 2^61", fields[1])
		case err != nil:
			return c, t.bad("cost %q is not a whole number", fields[1])
		}
	}
	if t.last.line > 0 && c.at < t.last.at {
		return c, t.bad("time %s is before the one of line %d, %s; a trace goes forward", c.text, t.last.line, t.last.text)
	}
	t.last = c
	return c, nil
}

// traceTime reads seconds as a decimal, or a time of RFC 3339, to the ns.
func traceTime(s string) (int64, error) {
	whole, fraction, point := strings.Cut(s, ".")
	switch {
	case s == "":
		return 0, errors.New("missing: seconds like 12.5, or RFC 3339")
	case strings.Contains(s, "T"):
		return parseDate(s)
	case !isDigits(whole), point && !isDigits(fraction):
		return 0, errors.New("neither seconds like 12.5 nor a time of RFC 3339, like 2026-03-28T12:00:00Z")
	case len(fraction) > 9:
		return 0, errFine
	}
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || sec >= maxTime/int64(time.Second) {
		return 0, errRange
	}
	ns, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return sec*1e9 + ns, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
