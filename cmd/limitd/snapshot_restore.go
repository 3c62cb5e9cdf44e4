package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"limitd/cluster"
)

// restoreFlags are the flags of `limitd snapshot restore`.
type restoreFlags struct {
	dataDir, node, config, peerListen, store string
}

func newSnapshotRestore(c *client) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make the data directory of a new cluster that starts with a saved state",
		Long: `Make the data directory of a new cluster that starts with a saved state. No node
is asked, and none of the old cluster fits the new one: it has another id.

The directory must be new. The node is the only voter; others --join it with
empty directories. What was admitted after the state was saved is forgotten.`,
		Example: `  limitd snapshot restore FILE --data-dir limitd-data/n1 --node n1 --config cluster.toml
  limitd snapshot restore FILE --data-dir limitd-data --node n1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.OutOrStdout(), args[0], c.json) },
	}
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "new data `DIRECTORY`")
	cmd.Flags().StringVar(&f.node, "node", "", "`ID` of the node")
	cmd.Flags().StringVar(&f.config, "config", "", "configuration `FILE` (TOML) that lists the node")
	cmd.Flags().StringVar(&f.peerListen, "peer-listen", "127.0.0.1:7380", "`ADDRESS` for other nodes, without --config")
	cmd.Flags().StringVar(&f.store, "log-store", "", "log `STORE`: bolt or wal (default: raft.log_store of --config, or "+cluster.NewStore+")")
	cmd.MarkFlagsMutuallyExclusive("config", "peer-listen")
	for _, name := range []string{"data-dir", "node"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func (f restoreFlags) run(out io.Writer, file string, json bool) error {
	self, store, next, err := f.resolve()
	if err != nil {
		return err
	}
	s, err := cluster.RestoreDir(file, f.dataDir, self, store)
	if err != nil {
		return err
	}
	ps := []pair{
		{"node", s.ID},
		{"raft_id", s.RaftID},
		{"cluster_id", s.ClusterID},
		{"generation", s.Generation},
		{"last_batch", s.Last},
		{"cluster_time", time.Unix(0, s.Time).UTC().Format(time.RFC3339Nano)},
		{"records", s.Records},
	}
	if json {
		return printJSON(out, object(ps))
	}
	if err := printPairs(out, ps); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s", next)
	return err
}

// resolve is the node as it will be started, its log store, and the lines that start it and the others.
func (f restoreFlags) resolve() (self cluster.Member, store, next string, err error) {
	if f.store != "" && !slices.Contains(cluster.LogStores, f.store) {
		return self, "", "", fmt.Errorf("--log-store: %q is unknown: use bolt or wal", f.store)
	}
	if f.config == "" {
		if err := checkNodeID(f.node); err != nil {
			return self, "", "", fmt.Errorf("--node: %w", err)
		}
		loopback, err := checkAddress(f.peerListen)
		if err == nil && !loopback {
			err = fmt.Errorf("%s is beyond loopback: list the node in a file with peers.insecure = true, and give that with --config", f.peerListen)
		}
		if err != nil {
			return self, "", "", fmt.Errorf("--peer-listen: %w", err)
		}
		next = fmt.Sprintf("Start it, with --listen ADDRESS unless that is %s:\n  limitd serve --node %s --peer-listen %s --data-dir %s\n", "127.0.0.1:6380", f.node, f.peerListen, f.dataDir)
		return cluster.Member{ID: f.node, Peer: f.peerListen}, f.store, next, nil
	}
	cfg, err := LoadConfig(f.config)
	if err != nil {
		return self, "", "", err
	}
	n, ok := cfg.Node(f.node)
	if !ok {
		return self, "", "", fmt.Errorf("--node %s is not in %s", f.node, f.config)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Start it:\n  %s\n", serveLine(f.config, n, f.dataDir))
	if len(cfg.Nodes) > 1 {
		b.WriteString("Then the others, with empty data directories, one after the other:\n")
	}
	for _, o := range cfg.Nodes {
		if o.ID != n.ID {
			fmt.Fprintf(&b, "  %s --join %s\n", serveLine(f.config, o, o.Data), n.RESP)
		}
	}
	return cluster.Member{ID: n.ID, Resp: n.RESP, Peer: n.Peer}, cmp.Or(f.store, cfg.Raft.LogStore), b.String(), nil
}
