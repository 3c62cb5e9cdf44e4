package main

import (
	"context"
	"fmt"

	"limitd/proc"
	"limitd/proc/nodes"
)

// The passwords of the cluster that has some.
var (
	byPassword = login{password: "sekret"}
	byUser     = login{user: "app", password: "sekret2"}
)

// passwords is for the cells that have some.
const passwords = `requirepass = "sekret"

[[user]]
name = "app"
password = "sekret2"
commands = ["limit", "read", "admin"]
keys = ["*"]

`

// patient is for the cells without a fault: a busy machine must not look like a
// dead leader there, for then every call has to be answered.
const patient = `[raft]
heartbeat = "10s"
election = "10s"
lease = "10s"

[limits]
request_timeout = "20s"
leader_wait = "20s"

`

// cluster is three nodes on loopback, of the shipped defaults but for some settings.
type cluster struct{ *nodes.Cluster }

// start starts every node that does not run, and waits until all answer.
func (c cluster) start(ctx context.Context) error {
	if err := c.Launch(); err != nil {
		return err
	}
	return c.AwaitAnswers(ctx)
}

// transfer hands leadership to a node, and returns when all follow it.
func (c cluster) transfer(ctx context.Context, to *nodes.Node) error {
	return proc.Await(ctx, "hand leadership to "+to.ID, nodes.Patience, func(ctx context.Context) error {
		leader, err := c.Leader(ctx)
		if err != nil {
			return err
		}
		if leader != to {
			if err := leader.Client.Do(ctx, "RL.CLUSTER", "TRANSFER", to.ID).Err(); err != nil {
				return err
			}
			return fmt.Errorf("%s leads", leader.ID)
		}
		return c.AwaitAnswers(ctx)
	})
}
