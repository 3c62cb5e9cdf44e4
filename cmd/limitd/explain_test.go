package main

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"limitd/algo"
)

// belowZero is a number that has wrapped. Only -1 is meant, and the offsets of zones
// are told by their colon.
var belowZero = regexp.MustCompile(`(^|[ (])-[0-9]+($|[^0-9:])`)

// Whatever is typed: an explanation without a number that has wrapped, of a limit that
// reads back as itself, or an error with its mark under the text.
func FuzzExplain(f *testing.F) {
	for _, seed := range []string{
		"100/1m", "token:7/1s,burst=3", "leaky:10/1s,queue=50", "fixed:1000/1h", "sliding:1/1ms", "log:3/10m", "fixed:3/year,tz=Asia/Dhaka,hour=23",
		"fixed:1/week,start=sat,tz=America/New_York", "1000000000/1s", "1/7625w", "4611686018427000000/7625w", "1/1ms,burst=4611686018427",
		"log:2305843009213693952/3812w", "sliding:2305843009213000000/3812w", "fixed:2305843009213000000/3812w", "leaky:1/1ms,queue=4611686018426",
		"fixed:9000000000000000/year", "\x80/1m", "a:1/1m", "1/1m,\u0301",
	} {
		f.Add(seed, int64(1774699200e9))
		f.Add(seed, int64(0))
		f.Add(seed, int64(maxTime))
	}
	f.Fuzz(func(t *testing.T, text string, date int64) {
		date &= math.MaxInt64 / 2
		l, err := parseLimit(text)
		if err != nil {
			lines := strings.Split(err.Error(), "\n")
			if n := len(lines); n != 3 || strings.Trim(lines[2], " ") != "^" || len(lines[2]) > len(lines[1])+1 {
				t.Fatalf("%q:\n%v", text, err)
			}
			return
		}
		if again, err := algo.Parse(l.String()); err != nil || again.String() != l.String() {
			t.Fatalf("%q: the canonical form %q is %v, %v", text, l, again, err)
		}
		var b strings.Builder
		writeExplanation(&b, l, date)
		said := strings.ReplaceAll(b.String(), "retry_after is -1\n", "")
		if strings.Contains(said, "%!") || belowZero.MatchString(said) {
			t.Fatalf("%q:\n%s", text, said)
		}
	})
}
