package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	waitPoll  = 200 * time.Millisecond
	waitLevel = 1000 // entries that a member may be behind the node that leads
)

func newClusterWait(c *client) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait [ID ...]",
		Short: "Wait until every member answers and is level, and these have a vote",
		Long: `Wait until every member of the cluster answers, sees a leader and has applied what
the leader has; and until each ID, if any is given, is a member with a vote.

It is what to run between two steps: after starting a cluster, after a node has
joined, before the next node is restarted. Each member is asked at its own
address for clients.`,
		Example: `  limitd cluster wait
  limitd cluster wait n4 n5 --addr 127.0.0.1:6381
  limitd cluster wait --timeout 5m && systemctl restart limitd`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			err := waitForCluster(cmd.Context(), c.all, ids, timeout)
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(cmd.OutOrStdout(), map[string]bool{"level": true})
			}
			fmt.Fprintln(cmd.OutOrStdout(), "every member answers and is level")
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "give up after `DURATION`, with exit code 2")
	return cmd
}

// all asks the node at addr (empty: the one that --addr names) for a flat reply
// of RL.CLUSTER: one row of STATUS, or the rows of NODES.
func (c *client) all(ctx context.Context, addr, what string) ([]object, error) {
	at := *c
	if addr != "" {
		at.addr = addr
	}
	reply, err := at.call(ctx, time.Second, "RL.CLUSTER", what)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	if what == "STATUS" {
		list = []any{reply}
	}
	rows := make([]object, len(list))
	for i, item := range list {
		if rows[i], err = pairs(item); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// waitForCluster polls until nothing is missing. ask is client.all.
func waitForCluster(ctx context.Context, ask func(ctx context.Context, addr, what string) ([]object, error), ids []string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		missing := clusterMisses(ctx, ask, ids)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if context.Cause(ctx) != context.DeadlineExceeded {
				return ctx.Err()
			}
			return fmt.Errorf("not within %v: %s", timeout, strings.Join(missing, "; "))
		case <-time.After(waitPoll):
		}
	}
}

// clusterMisses says what is not yet as it should be, in words.
func clusterMisses(ctx context.Context, ask func(ctx context.Context, addr, what string) ([]object, error), ids []string) (missing []string) {
	nodes, err := ask(ctx, "", "NODES")
	if err != nil {
		return []string{err.Error()}
	}
	var lead int64
	members := map[string]int64{} // applied index
	for _, n := range nodes {
		id, role := n.text("id"), n.text("role")
		if role == "none" {
			continue
		}
		if role == "nonvoter" && slices.Contains(ids, id) {
			missing = append(missing, id+" has no vote yet")
		}
		applied, err := askMember(ctx, ask, n.text("resp"))
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", id, err))
			continue
		}
		members[id] = applied
		if role == "leader" {
			lead = applied
		}
	}
	if lead == 0 {
		missing = append(missing, "no leader is known")
	}
	for id, applied := range members {
		if applied+waitLevel < lead {
			missing = append(missing, fmt.Sprintf("%s is %d entries behind", id, lead-applied))
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(nodes, func(n object) bool { return n.text("id") == id && n.text("role") != "none" }) {
			missing = append(missing, id+" is no member")
		}
	}
	return missing
}

// askMember asks a member itself whether it is ready, and how far it is.
func askMember(ctx context.Context, ask func(ctx context.Context, addr, what string) ([]object, error), addr string) (applied int64, err error) {
	if addr == "" {
		return 0, errors.New("its address for clients is not known yet")
	}
	status, err := ask(ctx, addr, "STATUS")
	if err != nil {
		return 0, err
	}
	if status[0].number("ready") != 1 {
		return 0, errors.New("it is not ready")
	}
	return status[0].number("applied_index"), nil
}

// field is the value of a field of a flat reply, nil if there is none.
func (o object) field(name string) any {
	for _, p := range o {
		if p.name == name {
			return p.value
		}
	}
	return nil
}

func (o object) text(name string) string {
	s, _ := o.field(name).(string)
	return s
}

func (o object) number(name string) int64 {
	n, _ := o.field(name).(int64)
	return n
}
