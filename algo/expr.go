package algo

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// MaxExpr is the longest limit expression, in bytes.
const MaxExpr = 128

// ExprError says what is wrong with a limit expression, and where.
type ExprError struct {
	Expr string
	Pos  int    // of the character, from 0
	Msg  string // what is wrong, and what would be right
}

func (e *ExprError) Error() string {
	return fmt.Sprintf("%s: %s (character %d)", shown(e.Expr), e.Msg, e.Pos+1)
}

// shown is a text that a client sent, fit for a line.
func shown(s string) string {
	if len(s) > MaxExpr {
		s = s[:MaxExpr] + "..."
	}
	q := strconv.Quote(s)
	if q == `"`+s+`"` && s != "" {
		return s
	}
	return q
}

var algorithmNames = map[string]Algorithm{
	"gcra": GCRA, "token": Token, "leaky": Leaky, "fixed": Fixed, "sliding": Sliding, "log": Log,
}

// Parse reads a limit expression
//
//	[algorithm:]limit/period[,option...]
//
// such as "100/1m", "gcra:30/1m,burst=16", "log:3/10m", "leaky:10/1s,queue=50",
// "fixed:1000/day,tz=Asia/Dhaka". The error is an [*ExprError].
func Parse(text string) (Limit, error) {
	p := &exprParser{text: text, rest: text}
	l := p.parse()
	if p.err != nil {
		return Limit{}, p.err
	}
	return l, nil
}

// exprParser reads from left to right. After the first error nothing is read.
type exprParser struct {
	text, rest string
	err        *ExprError
}

func (p *exprParser) pos() int { return len(p.text) - len(p.rest) }

func (p *exprParser) failAt(pos int, format string, args ...any) {
	if p.err == nil {
		p.err = &ExprError{p.text, pos, fmt.Sprintf(format, args...)}
		p.rest = ""
	}
}

// until takes what is before the first of the characters, which stays.
func (p *exprParser) until(chars string) string {
	i := strings.IndexAny(p.rest, chars)
	if i < 0 {
		i = len(p.rest)
	}
	s := p.rest[:i]
	p.rest = p.rest[i:]
	return s
}

func (p *exprParser) parse() Limit {
	if len(p.text) > MaxExpr {
		p.failAt(MaxExpr, "a limit has at most %d characters", MaxExpr)
		return Limit{}
	}
	l := Limit{Algorithm: GCRA, expr: &expr{}}
	if i := strings.IndexAny(p.rest, ":/"); i >= 0 && p.rest[i] == ':' {
		name := p.rest[:i]
		a, ok := algorithmNames[name]
		if !ok {
			p.failAt(0, "unknown algorithm %s, use gcra, token, leaky, fixed, sliding, log", strconv.Quote(name))
			return Limit{}
		}
		l.Algorithm = a
		p.rest = p.rest[i+1:]
	}
	limitAt := p.pos()
	l.limit = p.number("limit", "/")
	if p.err == nil && !strings.HasPrefix(p.rest, "/") {
		p.failAt(p.pos(), "a limit is written limit/period, like 100/1m: the period is missing")
		return Limit{}
	}
	p.rest = strings.TrimPrefix(p.rest, "/")
	periodAt := p.pos()
	p.period(&l)
	o := p.options(&l)
	if p.err != nil {
		return Limit{}
	}
	p.measure(&l, o, limitAt, periodAt)
	if p.err != nil {
		return Limit{}
	}
	l.text = l.print(o)
	l.ident = l.identity()
	return l
}

// number reads a positive integer that ends at one of the characters of stop.
func (p *exprParser) number(what, stop string) int64 {
	at := p.pos()
	s := p.until(stop + ",")
	if p.err != nil {
		return 0
	}
	least := int64(1)
	if what == "queue" || what == "hour" {
		least = 0
	}
	if s == "" {
		p.failAt(at, "%s is missing: it is a whole number, %d or more", what, least)
		return 0
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			p.failAt(at+i, "%s is not a whole number: unexpected %s", what, strconv.Quote(firstRune(s[i:])))
			return 0
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		p.failAt(at, "%s %s is too large", what, s)
	case n < least:
		p.failAt(at, "%s must be %d or more, not %d", what, least, n)
	}
	return n
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}

// durationUnits are in the order in which a duration is printed.
var durationUnits = []struct {
	name string
	ns   int64
}{
	{"w", 7 * 24 * int64(time.Hour)}, {"d", 24 * int64(time.Hour)}, {"h", int64(time.Hour)},
	{"m", int64(time.Minute)}, {"s", int64(time.Second)}, {"ms", int64(time.Millisecond)},
}

// period reads a duration, or the name of a calendar window.
func (p *exprParser) period(l *Limit) {
	at := p.pos()
	s := p.until(",")
	if p.err != nil {
		return
	}
	for u, name := range unitNames {
		if s != name || name == "" {
			continue
		}
		if l.Algorithm != Fixed {
			p.failAt(at, "%s is a calendar window, which only fixed has: write fixed:%d/%s, or a duration like 1d", s, l.limit, s)
			return
		}
		l.calendar = &calendar{unit: calendarUnit(u), zone: "UTC", loc: time.UTC, start: time.Monday}
		return
	}
	l.expr.period = p.duration(s, at)
}

func (p *exprParser) duration(s string, at int) int64 {
	const use = "use ms, s, m, h, d, w"
	if s == "" {
		p.failAt(at, "the period is missing: a number and a unit, like 1m; %s", use)
		return 0
	}
	sum, begin := int64(0), at
	for last := int64(math.MaxInt64); s != ""; {
		digits := 0
		for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
			digits++
		}
		if digits == 0 {
			p.failAt(at, "period: a number was expected, not %s; write a number and a unit, like 1m", strconv.Quote(firstRune(s)))
			return 0
		}
		letters := digits
		for letters < len(s) && (s[letters] < '0' || s[letters] > '9') {
			letters++
		}
		name := s[digits:letters]
		size := int64(0)
		for _, u := range durationUnits {
			if u.name == name {
				size = u.ns
			}
		}
		n, err := strconv.ParseInt(s[:digits], 10, 64)
		hi, lo := bits.Mul64(uint64(n), uint64(size))
		switch {
		case name == "":
			p.failAt(at+digits, "the unit of the period is missing, %s", use)
		case size == 0:
			p.failAt(at+digits, "unknown unit %s, %s", strconv.Quote(name), use)
		case size >= last:
			p.failAt(at+digits, "unit %s stands behind a smaller or equal one: write the larger unit first, each once", name)
		case err != nil || hi > 0 || lo > maxSpan-uint64(sum):
			p.failAt(at, "the period is too long: at most 2^62 ns (146 years)")
		}
		if p.err != nil {
			return 0
		}
		sum += int64(lo)
		last = size
		at += letters
		s = s[letters:]
	}
	if sum == 0 {
		p.failAt(begin, "the period must be longer than 0")
	}
	return sum
}
