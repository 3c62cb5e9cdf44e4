package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// throttleReply is the reply of CL.THROTTLE.
type throttleReply struct {
	Limited    bool  `json:"limited"`
	Limit      int64 `json:"limit"`
	Remaining  int64 `json:"remaining"`
	RetryAfter int64 `json:"retry_after"` // s; -1: not limited, or it can never pass
	ResetAfter int64 `json:"reset_after"` // s
}

func newThrottle() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "throttle KEY BURST COUNT PERIOD [QTY]",
		Short: "Ask CL.THROTTLE; the exit code is the answer: 0 allowed, 1 denied",
		Long: `Ask CL.THROTTLE whether QTY (default 1) may pass now: at most BURST+1 at once,
and COUNT per PERIOD seconds in the long run. QTY 0 only looks.

A negative QTY gives back.`,
		Example: `  limitd throttle user:42 15 16 86400
  limitd throttle user:42 15 16 86400 && send-the-mail
  limitd throttle user:42 15 16 86400 -1`,
		Args: cobra.RangeArgs(4, 5),
		RunE: func(cmd *cobra.Command, args []string) error {
			call := []any{"CL.THROTTLE"}
			for _, a := range args {
				call = append(call, a)
			}
			return decide(cmd, &c, parseThrottle, call...)
		},
	}
	c.flags(cmd)
	return cmd
}

// quantityIsNoFlag keeps a negative quantity at the end from being read as a flag.
func quantityIsNoFlag(args []string) []string {
	last := len(args) - 1
	if last < 1 || args[0] != "throttle" || slices.Contains(args, "--") {
		return args
	}
	if q := args[last]; len(q) < 2 || q[0] != '-' || strings.Trim(q[1:], "0123456789") != "" {
		return args
	}
	return slices.Insert(slices.Clone(args), last, "--")
}

func parseThrottle(reply any) (throttleReply, error) {
	var v [5]int64
	if !fill(v[:], reply) {
		return throttleReply{}, fmt.Errorf("unexpected reply %v: five integers are the reply of CL.THROTTLE", reply)
	}
	return throttleReply{v[0] == 1, v[1], v[2], v[3], v[4]}, nil
}

func (r throttleReply) denied() bool { return r.Limited }

func (r throttleReply) String() string {
	switch {
	case !r.Limited:
		return fmt.Sprintf("allowed: %d of %d left, full again in %d s", r.Remaining, r.Limit, r.ResetAfter)
	case r.RetryAfter < 0:
		return fmt.Sprintf("denied: more than the limit of %d can never pass", r.Limit)
	default:
		return fmt.Sprintf("denied: %d of %d left, retry in %d s", r.Remaining, r.Limit, r.RetryAfter)
	}
}
