package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// thin is the space between groups of three digits.
const thin = '\u202f'

// How much of a text that others wrote is shown, bytes.
const (
	shortText = 600
	longText  = 4000
)

func show(s string) string { return readable(s, shortText) }
func long(s string) string { return readable(s, longText) }

// readable makes a text that others wrote fit to be read: what is not printable, or
// would turn the direction of the line, is written as an escape, and what is longer
// than most bytes is cut. (That it cannot become markup is html/template's care.)
func readable(s string, most int) string {
	rest := 0
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s, rest = s[:cut], len(s)-cut
	}
	var b strings.Builder
	for len(s) > 0 {
		c, size := utf8.DecodeRuneInString(s)
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(c) || c == thin:
			b.WriteRune(c)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		}
		s = s[size:]
	}
	if rest > 0 {
		fmt.Fprintf(&b, "… (%s bytes more)", count(int64(rest)))
	}
	return b.String()
}

// count writes a number in groups of three digits.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + string(thin) + s[i:]
	}
	return s
}

// seconds is a time of the run.
func seconds(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', 3, 64) + " s" }

// duration is a length of time, with three digits that mean something.
func duration(ns int64) string {
	d := time.Duration(ns)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d.Abs() >= 100*unit {
			return d.Round(unit).String()
		}
		if d.Abs() >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// promises, in one line each. docs/promises.md has all of it.
var promises = map[string]string{
	"all": "every promise rests on it",

	"P1": "never one too many: at most burst + t/T admissions of a key in any interval t",
	"P2": "an admission that was answered is on disk at a majority",
	"P3": "a denied call changes nothing",
	"P4": "several limits in one call: all are charged or none",
	"P5": "one clock: decisions never go back in time, and the nodes' wall clocks may say what they like",
	"P6": "an answer says how long to wait, never too short, and what is left",
	"P7": "without a majority there is still an answer, and it says whether the call may have been charged",
}

func promise(name string) string { return promises[name] }
