package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// changeTimeout bounds a change of the membership: the node that is asked tries
// for about 10 s.
const changeTimeout = 15 * time.Second

// change asks for a change of the membership. said is what to tell a person once
// it is made, made what to tell a program.
func (c *client) change(cmd *cobra.Command, said string, made map[string]any, call ...any) error {
	if _, err := c.call(cmd.Context(), changeTimeout, append([]any{"RL.CLUSTER"}, call...)...); err != nil {
		return doubtful(err)
	}
	if c.json {
		return printJSON(cmd.OutOrStdout(), made)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), said)
	return err
}

// doubtful says of a call that was sent and not answered that it may have been done.
func doubtful(err error) error {
	var answered redis.Error
	var op *net.OpError
	if errors.As(err, &answered) || errors.As(err, &op) && op.Op == "dial" {
		return err
	}
	return fmt.Errorf("no answer, so the change may have been made: see `limitd cluster nodes` (%w)", err)
}

// forceFlag adds --force.
func forceFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("force", false, "go ahead though too few voters may answer afterwards; "+
		"then nothing is admitted until enough of them are back")
}

// withForce is a call with its last word, if it is wanted.
func withForce(force bool, call ...any) []any {
	if force {
		call = append(call, "FORCE")
	}
	return call
}

func newClusterJoin(c *client) *cobra.Command {
	var nonVoter bool
	cmd := &cobra.Command{
		Use:   "join ID PEER-ADDRESS",
		Short: "Take in a node that waits",
		Long: `Take in a node that waits with an empty data directory at its peer address. It
becomes a non-voter, gets the state, and gets its vote once it is caught up.

A node waits when it was started with a configuration file that lists it, after
the cluster had been founded without it; its log says so. Started with --join,
a node asks by itself and this command is not needed.

Refused if a member has the same node id (a node that lost its disk: remove the
member first) or the same peer address, or if the node is of another cluster.`,
		Example: `  limitd cluster join n4 127.0.0.1:7384
  limitd cluster join n4 127.0.0.1:7384 --non-voter --addr 127.0.0.1:6382`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			call := []any{"JOIN", args[0], args[1]}
			said := args[0] + " is a member; it gets its vote once it is caught up (limitd cluster wait " + args[0] + ")"
			if nonVoter {
				call = append(call, "NONVOTER")
				said = args[0] + " is a member without a vote"
			}
			return c.change(cmd, said, map[string]any{"joined": args[0]}, call...)
		},
	}
	cmd.Flags().BoolVar(&nonVoter, "non-voter", false, "it gets no vote until it is promoted")
	return cmd
}

func newClusterPromote(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "promote ID",
		Short: "Give a non-voter its vote",
		Long: `Give a non-voter its vote. Refused until it is caught up: at most 1000 entries
and 1 s of cluster time behind the leader.`,
		Example: "  limitd cluster promote n4",
		Args:    cobra.ExactArgs(1),
	}
	force := forceFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.change(cmd, args[0]+" has a vote", map[string]any{"promoted": args[0]}, withForce(*force, "PROMOTE", args[0])...)
	}
	return cmd
}

func newClusterDemote(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demote ID",
		Short: "Take a node's vote; it stays a member",
		Long: `Take a node's vote. It stays a member: it holds the state and answers clients,
and is neither waited for nor elected. A leader hands over first.

Refused if too few voters would answer afterwards, and for the last voter.`,
		Example: "  limitd cluster demote n4",
		Args:    cobra.ExactArgs(1),
	}
	force := forceFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.change(cmd, args[0]+" has no vote any more", map[string]any{"demoted": args[0]}, withForce(*force, "DEMOTE", args[0])...)
	}
	return cmd
}

func newClusterRemove(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a member, dead or alive",
		Long: `Remove a member. ID is its node id, or its raft id as ` + "`limitd cluster nodes`" + ` shows
it. A leader hands over first. A node that runs stops itself with exit code 3,
and its data directory is of no use any more: it comes back with an empty one
and --join.

Refused if too few voters would answer afterwards, and for the last voter.`,
		Example: `  limitd cluster remove n3

To replace a node whose disk died, at the same address:
  limitd cluster remove n3
  limitd serve --config cluster.toml --node n3 --join 127.0.0.1:6381`,
		Args: cobra.ExactArgs(1),
	}
	force := forceFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.change(cmd, args[0]+" is no member any more", map[string]any{"removed": args[0]}, withForce(*force, "REMOVE", args[0])...)
	}
	return cmd
}

func newClusterLeave(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "leave --addr HOST:PORT",
		Short: "Have a node leave the cluster and stop",
		Long: `Have the node at --addr leave. It hands over leadership if it has it, is removed,
answers what its clients have sent, and stops with exit code 0. Its data
directory is of no use any more: it comes back with an empty one and --join.

A plain stop (SIGTERM) is not leaving: such a node stays a member.

Refused if too few voters would answer afterwards, and for the last voter.`,
		Example: "  limitd cluster leave --addr 127.0.0.1:6384",
		Args:    cobra.NoArgs,
	}
	force := forceFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.addr == "" {
			return errors.New("--addr is missing: say which node is to leave")
		}
		return c.change(cmd, "the node at "+c.addr+" has left and stops", map[string]any{"left": c.addr}, withForce(*force, "LEAVE")...)
	}
	return cmd
}

func newClusterTransfer(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "transfer [ID]",
		Short: "Hand leadership to a node, or to any voter that is caught up",
		Example: `  limitd cluster transfer
  limitd cluster transfer n2`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			call := []any{"TRANSFER"}
			for _, a := range args {
				call = append(call, a)
			}
			return c.change(cmd, "leadership is handed over", map[string]any{"transferred": true}, call...)
		},
	}
}
