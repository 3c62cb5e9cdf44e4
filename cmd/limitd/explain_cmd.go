package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"limitd/algo"
)

func newExplain() *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "explain LIMIT [LIMIT ...]",
		Short: "Say in words what a limit does, and the most that it may ever pass",
		Long: `Say in words what each LIMIT does: what passes, the most that may pass within one
period if somebody chooses the worst moments, what a client is told, when a key
starts anew, and what a key costs. It asks no server.

A limit is written [algorithm:]limit/period[,option...]. Algorithms are gcra (the
default), token, leaky, fixed, sliding, log; see docs/limits.md.`,
		Example: `  limitd explain 100/1m
  limitd explain log:3/10m sliding:3/10m
  limitd explain fixed:1000/day,tz=Asia/Dhaka --at 2026-03-28T12:00:00Z`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := dateOf(at)
			if err != nil {
				return err
			}
			limits, err := parseLimits(args)
			if err != nil {
				return err
			}
			var b strings.Builder
			for i, l := range limits {
				if i > 0 {
					b.WriteByte('\n')
				}
				writeExplanation(&b, l, date)
			}
			_, err = cmd.OutOrStdout().Write([]byte(b.String()))
			return err
		},
	}
	c.Flags().StringVar(&at, "at", "", "show the calendar windows from this `TIME` on (RFC 3339) instead of from now")
	return c
}

// dateOf reads the flag --at.
func dateOf(at string) (int64, error) {
	if at == "" {
		return time.Now().UnixNano(), nil
	}
	ns, err := parseDate(at)
	if err != nil {
		return 0, fmt.Errorf("--at %s: %w", at, err)
	}
	return ns, nil
}

// parseDate reads a time of RFC 3339 to the ns, exactly.
func parseDate(s string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, errors.New("not a time of RFC 3339, like 2026-03-28T12:00:00Z")
	}
	// time.Parse drops what is finer than a nanosecond.
	if i := strings.IndexAny(s, ".,"); i >= 0 && len(s[i+1:])-len(strings.TrimLeft(s[i+1:], "0123456789")) > 9 {
		return 0, errFine
	}
	if t.Unix() < 0 || t.Unix() >= maxTime/int64(time.Second) {
		return 0, errRange
	}
	return t.UnixNano(), nil
}

// maxTime is the latest time that the limiters are made for, in ns since 1970.
const maxTime = math.MaxInt64 / 2

var (
	errFine  = errors.New("finer than a nanosecond: at most 9 digits behind the point")
	errRange = errors.New("out of range: from 1970 to 2116")
)

// parseLimits reads all of them, or says what is wrong with each that is wrong.
func parseLimits(args []string) (limits []algo.Limit, err error) {
	var errs []error
	for _, a := range args {
		l, err := parseLimit(a)
		limits, errs = append(limits, l), append(errs, err)
	}
	return limits, errors.Join(errs...)
}

// parseLimit reads a limit; an error is shown under the character that is wrong.
func parseLimit(text string) (algo.Limit, error) {
	l, err := algo.Parse(text)
	var bad *algo.ExprError
	if errors.As(err, &bad) {
		line, at := underline(bad.Expr, bad.Pos)
		err = fmt.Errorf("%s\n  %s\n  %s^", bad.Msg, line, strings.Repeat(" ", at))
	}
	return l, err
}

// underline is text as one line in which each byte's column is known, and the column
// of the byte pos. What is not printable ASCII is escaped; a long text is cut.
func underline(text string, pos int) (line string, column int) {
	cut := len(text) > algo.MaxExpr
	if cut {
		text = text[:algo.MaxExpr]
	}
	pos = min(pos, len(text))
	escape := func(s string) string {
		s = strconv.QuoteToASCII(s)
		return strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
	}
	before := escape(text[:pos])
	line = before + escape(text[pos:])
	if cut {
		line += "..."
	}
	return line, len(before)
}
