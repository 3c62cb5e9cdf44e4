package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"limitd/algo"
)

func newSimulate() *cobra.Command {
	var file string
	var each bool
	c := &cobra.Command{
		Use:   "simulate LIMIT --trace FILE",
		Short: "Replay calls from a file against a limit, and say what would have passed",
		Long: `Replay the calls of FILE (- is standard input) against LIMIT, as one key would see
them: how many pass, what the others are told, and the most units in any window
of the period. It asks no server, and a file may have any length.

A line of FILE is time or time,cost. The time is seconds as a decimal or RFC 3339,
exact to the nanosecond, and never goes back. The cost is 1 unless it is given;
0 looks and takes nothing, below 0 gives back. A first line of names is skipped.`,
		Example: `  limitd simulate 100/1m --trace calls.csv
  seq 0 0.1 120 | limitd simulate log:100/1m --trace -
  limitd simulate leaky:10/1s,queue=5 --trace calls.csv --each`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := parseLimit(args[0])
			if err != nil {
				return err
			}
			name, in := "standard input", cmd.InOrStdin()
			if file != "-" {
				f, err := os.Open(file)
				if err != nil {
					return err
				}
				defer f.Close()
				name, in = file, f
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			err = simulate(out, l, newTraceReader(name, in), each)
			return errors.Join(err, out.Flush())
		},
	}
	c.Flags().StringVar(&file, "trace", "", "the `FILE` with the calls, - for standard input")
	c.Flags().BoolVar(&each, "each", false, "print a line for each call too; durations are seconds, -1 is never")
	if err := c.MarkFlagRequired("trace"); err != nil {
		panic(err) // it has been added above
	}
	return c
}

// simulate replays a trace to its end.
func simulate(w io.Writer, l algo.Limit, trace *traceReader, each bool) error {
	r := newReplay(l)
	width := 0 // of the times, as the first one is
	for {
		c, err := trace.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		v, err := r.call(c)
		if err != nil {
			return trace.bad("%v", err)
		}
		if !each {
			continue
		}
		if width == 0 {
			width = 12
			if len(c.text) > width { // a date, perhaps with a fraction
				width = len("2006-01-02T15:04:05.000000000Z")
			}
			writeEach(w, width, "time", "cost", "allowed", "remaining", "retry_after", "reset_after", "delay")
		}
		allowed := "no"
		if v.Allowed {
			allowed = "yes"
		}
		retry := seconds(v.RetryAfter)
		if v.RetryAfter == algo.Never {
			retry = "-1"
		}
		writeEach(w, width, c.text, c.cost, allowed, v.Remaining, retry, seconds(v.ResetAfter), seconds(v.Delay))
	}
	if r.calls == 0 {
		return fmt.Errorf("%s: no calls in it", trace.name)
	}
	if each {
		fmt.Fprintln(w)
	}
	r.report(w)
	return nil
}

func writeEach(w io.Writer, width int, time, cost, allowed, remaining, retry, reset, delay any) {
	fmt.Fprintf(w, "%-*v %6v %8v %10v %12v %12v %12v\n", width, time, cost, allowed, remaining, retry, reset, delay)
}
