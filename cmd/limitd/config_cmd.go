package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newConfig() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Work with configuration files",
		Args:  cobra.NoArgs,
		RunE:  showHelp,
	}
	c.AddCommand(newConfigCheck())
	return c
}

// configVerdict is what `limitd config check --json` prints.
type configVerdict struct {
	File   string   `json:"file"`
	OK     bool     `json:"ok"`
	Nodes  int      `json:"nodes"`
	Errors []string `json:"errors"` // each names the key and, if it is in the file, the line
}

func newConfigCheck() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration file and name every key that is wrong, with its line",
		Example: `  limitd config check cluster.toml
  limitd config check cluster.toml && systemctl restart limitd`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := LoadConfig(args[0])
			if asJSON {
				v := configVerdict{File: args[0], OK: err == nil, Nodes: len(cfg.Nodes), Errors: []string{}}
				if err != nil {
					v.Errors = strings.Split(err.Error(), "\n")
				}
				return errors.Join(printJSON(cmd.OutOrStdout(), v), err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: ok, %d nodes\n", args[0], len(cfg.Nodes))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
