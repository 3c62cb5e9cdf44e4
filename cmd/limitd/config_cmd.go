package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfig() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Work with configuration files",
		Args:  cobra.NoArgs,
		RunE:  showHelp,
	}
	c.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration file and name every key that is wrong, with its line",
		Example: `  limitd config check cluster.toml
  limitd config check cluster.toml && systemctl restart limitd`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := LoadConfig(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok, %d nodes\n", args[0], len(cfg.Nodes))
			return nil
		},
	})
	return c
}
