package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCluster() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look at a running cluster, and change who is in it",
		Args:  cobra.NoArgs,
		RunE:  showHelp,
	}
	c.flags(cmd)
	cmd.AddCommand(
		newClusterStatus(&c),
		newClusterNodes(&c),
		newClusterWait(&c),
		newClusterJoin(&c),
		newClusterPromote(&c),
		newClusterDemote(&c),
		newClusterRemove(&c),
		newClusterLeave(&c),
		newClusterTransfer(&c),
	)
	return cmd
}

func newClusterStatus(c *client) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show how the node asked sees the cluster",
		Example: "  limitd cluster status --addr 127.0.0.1:6382",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := c.call(cmd.Context(), clientTimeout, "RL.CLUSTER", "STATUS")
			if err != nil {
				return err
			}
			ps, err := pairs(reply)
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(cmd.OutOrStdout(), object(ps))
			}
			return printPairs(cmd.OutOrStdout(), ps)
		},
	}
}

func newClusterNodes(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes with their roles",
		Example: `  limitd cluster nodes
  limitd cluster nodes --json | jq -r '.[] | select(.role=="leader").id'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reply, err := c.call(cmd.Context(), clientTimeout, "RL.CLUSTER", "NODES")
			if err != nil {
				return err
			}
			list, ok := reply.([]any)
			if !ok {
				return fmt.Errorf("unexpected reply %v: is this a limitd node of this version?", reply)
			}
			rows := make([]object, len(list))
			for i, item := range list {
				ps, err := pairs(item)
				if err != nil {
					return err
				}
				rows[i] = ps
			}
			if c.json {
				return printJSON(cmd.OutOrStdout(), rows)
			}
			return printTable(cmd.OutOrStdout(), rows)
		},
	}
}
