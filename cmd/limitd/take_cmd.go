package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"limitd/algo"
)

// takeReply is the reply of RL.TAKE.
type takeReply struct {
	Allowed      bool  `json:"allowed"`
	Limit        int64 `json:"limit"`
	Remaining    int64 `json:"remaining"`
	RetryAfterMS int64 `json:"retry_after_ms"` // -1: it can never pass
	ResetAfterMS int64 `json:"reset_after_ms"`
	DelayMS      int64 `json:"delay_ms"` // leaky: how long to wait before acting
	AtMS         int64 `json:"at_ms"`    // cluster time
}

func newTake() *cobra.Command {
	var (
		c    client
		cost int64
		peek bool
		id   string
	)
	cmd := &cobra.Command{
		Use:   "take KEY LIMIT",
		Short: "Ask RL.TAKE; the exit code is the answer: 0 allowed, 1 denied",
		Long: `Ask RL.TAKE whether --cost (default 1) may pass now under LIMIT, and charge it.
A LIMIT is written [algorithm:]limit/period[,option...]; limitd explain says what one does.`,
		Example: `  limitd take otp:42 log:3/10m
  limitd take user:42 100/1m,burst=20 --cost 5 --id 7f3a && call-the-model
  limitd take api fixed:1000/day,tz=Asia/Dhaka --peek`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := algo.Parse(args[1]); err != nil {
				return fmt.Errorf("limit %w", err)
			}
			call := []any{"RL.TAKE", args[0], args[1], "COST", cost}
			if peek {
				call = append(call, "PEEK")
			}
			if cmd.Flags().Changed("id") {
				call = append(call, "ID", id)
			}
			return decide(cmd, &c, parseTake, call...)
		},
	}
	c.flags(cmd)
	cmd.Flags().Int64Var(&cost, "cost", 1, "units to charge")
	cmd.Flags().BoolVar(&peek, "peek", false, "only say whether they would pass")
	cmd.Flags().StringVar(&id, "id", "", "`TOKEN` of this call: repeated with it, it is not charged again")
	return cmd
}

func parseTake(reply any) (takeReply, error) {
	var v [7]int64
	if !fill(v[:], reply) {
		return takeReply{}, fmt.Errorf("unexpected reply %v: seven integers are the reply of RL.TAKE", reply)
	}
	return takeReply{v[0] == 1, v[1], v[2], v[3], v[4], v[5], v[6]}, nil
}

func (r takeReply) denied() bool { return !r.Allowed }

func (r takeReply) String() string {
	switch {
	case r.Allowed && r.DelayMS > 0:
		return fmt.Sprintf("allowed: wait %s before acting; %d of %d left, empty in %s", inSeconds(r.DelayMS), r.Remaining, r.Limit, inSeconds(r.ResetAfterMS))
	case r.Allowed:
		return fmt.Sprintf("allowed: %d of %d left, unused again in %s", r.Remaining, r.Limit, inSeconds(r.ResetAfterMS))
	case r.RetryAfterMS < 0:
		return fmt.Sprintf("denied: more than the limit of %d can never pass", r.Limit)
	default:
		return fmt.Sprintf("denied: %d of %d left, retry in %s", r.Remaining, r.Limit, inSeconds(r.RetryAfterMS))
	}
}

// inSeconds writes ms as seconds.
func inSeconds(ms int64) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + " s"
}
