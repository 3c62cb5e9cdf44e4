package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"limitd/cluster"
)

// migrateFlags are the flags of `limitd migrate-log`.
type migrateFlags struct {
	dataDir, to string
	json        bool
}

func newMigrateLog() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate-log",
		Short: "Give the log of a stopped node to the other log store",
		Long: `Give the log of a stopped node, and its terms and votes, to another log store:
bolt (one file, raft.db) or wal (segments in a directory, raft.wal). A node
takes the one that its directory has; if raft.log_store says another, it does
not start.

The copy is compared with the old log entry by entry before it takes its place,
and the old one is removed after that. When it was interrupted, run it again.
The nodes of a cluster may differ: stop, migrate and start one after the other.`,
		Example: `  limitd migrate-log --data-dir limitd-data/n1 --to wal
  limitd migrate-log --data-dir limitd-data/n1 --to bolt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "data `DIRECTORY` of the stopped node")
	cmd.Flags().StringVar(&f.to, "to", "", "log `STORE`: bolt or wal")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	for _, name := range []string{"data-dir", "to"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func (f migrateFlags) run(out io.Writer) error {
	m, err := cluster.MigrateLog(f.dataDir, f.to)
	if err != nil {
		return err
	}
	entries := uint64(0)
	if m.Last > 0 {
		entries = m.Last - m.First + 1
	}
	ps := []pair{
		{"from", m.From},
		{"to", m.To},
		{"entries", entries},
		{"first_entry", m.First},
		{"last_entry", m.Last},
		{"values", m.Values},
		{"removed", strings.Join(m.Removed, " ")},
	}
	if f.json {
		return printJSON(out, object(ps))
	}
	if err := printPairs(out, ps); err != nil {
		return err
	}
	if m.From == m.To {
		_, err = fmt.Fprintf(out, "\nThe log store of %s was %s already.\n", f.dataDir, m.To)
	} else {
		_, err = fmt.Fprintf(out, "\nThe log store of %s is %s now. If the node's configuration has raft.log_store (serve --log-store, without one), it must be %q too.\n", f.dataDir, m.To, m.To)
	}
	return err
}
