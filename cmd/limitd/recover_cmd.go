package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"limitd/cluster"
)

// recoverFlags are the flags of `limitd recover`.
type recoverFlags struct {
	dataDir, peers string
	yes, json      bool
}

// onlyLooked ends what `limitd recover` prints without --yes.
const onlyLooked = "\nNothing was changed. Run it again with --yes to make this node the only voter of the cluster.\n"

func newRecover() *cobra.Command {
	var f recoverFlags
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Rebuild a cluster that lost its majority for good, from one survivor",
		Long: `Rebuild a cluster that lost its majority for good, from one survivor.

All nodes must be stopped. Without --yes it shows what the data directory holds
and changes nothing: compare the survivors, and recover the one with the highest
last_term, of equal ones the one with the highest last_entry. Recover one only.

With --yes the node becomes the only voter of the same cluster, in the next
generation and under a new raft id, so that nodes which come back with their old
data are refused. All that its log holds is kept, committed or not. What others
agreed on and this node never got is lost: those admissions are forgotten, and
can be given a second time. The other nodes join again with empty directories.

The old files are moved to before-recovery-<n> in the data directory. When it was
interrupted, the node does not start, and a second run finishes.`,
		Example: `  limitd recover --data-dir limitd-data/n3 --peers cluster.toml
  limitd recover --data-dir limitd-data/n3 --peers cluster.toml --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "data `DIRECTORY` of the survivor")
	cmd.Flags().StringVar(&f.peers, "peers", "", "configuration `FILE` (TOML) of the cluster; it lists the survivor, whose peer address counts")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do it")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	for _, name := range []string{"data-dir", "peers"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func (f recoverFlags) run(out io.Writer) error {
	cfg, err := LoadConfig(f.peers)
	if err != nil {
		return fmt.Errorf("--peers: %w", err)
	}
	id, err := cluster.NodeOf(f.dataDir)
	if err != nil {
		return fmt.Errorf("--data-dir %s: %w", f.dataDir, err)
	}
	self, ok := cfg.Node(id)
	if !ok {
		return fmt.Errorf("--peers: %s does not list node %s, to which %s belongs: list it, with the addresses that it will have", f.peers, id, f.dataDir)
	}
	if !f.yes {
		s, err := cluster.Inspect(f.dataDir)
		if err != nil {
			return err
		}
		return f.print(out, surveyPairs(s), surveyText(s)+onlyLooked)
	}
	r, err := cluster.Recover(f.dataDir, cluster.Member{ID: self.ID, Resp: self.RESP, Peer: self.Peer})
	if err != nil {
		return err
	}
	return f.print(out, recoveryPairs(r), surveyText(r.Survey)+f.nextLines(cfg, self))
}

func (f recoverFlags) print(out io.Writer, ps []pair, text string) error {
	if f.json {
		return printJSON(out, object(ps))
	}
	if err := printPairs(out, ps); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, text)
	return err
}

func surveyPairs(s cluster.Survey) []pair {
	return []pair{
		{"node", s.ID},
		{"raft_id", s.RaftID},
		{"cluster_id", s.ClusterID},
		{"generation", s.Generation},
		{"last_term", s.LastTerm},
		{"last_entry", s.LastIndex()},
		{"committed_at_least", s.CommittedAtLeast},
		{"entries_beyond", s.Uncertain},
		{"last_batch", s.Last},
		{"cluster_time", time.Unix(0, s.Time).UTC().Format(time.RFC3339Nano)},
		{"records", s.Records},
		{"snapshot_index", s.SnapshotIndex},
		{"log_first", s.LogFirst},
		{"log_last", s.LogLast},
		{"voters", strings.Join(s.Voters, " ")},
		{"non_voters", strings.Join(s.NonVoters, " ")},
	}
}

// recoveryPairs shows what the node was and what it is now.
func recoveryPairs(r cluster.Recovery) []pair {
	ps := surveyPairs(r.Survey)
	at := slices.IndexFunc(ps, func(p pair) bool { return p.name == "last_term" })
	return slices.Concat(ps[:at], []pair{{"new_raft_id", r.NewRaftID}, {"new_generation", r.Generation}}, ps[at:], []pair{{"old_files", r.Backup}})
}

// surveyText says what the figures mean for the operator.
func surveyText(s cluster.Survey) string {
	var b strings.Builder
	if !slices.Contains(s.Voters, s.RaftID) {
		fmt.Fprintf(&b, "\nWARNING: by the newest configuration that it knows, %s is no voter. It may have been removed, or be far behind: take another survivor if there is one.\n", s.ID)
	}
	fmt.Fprintf(&b, "\nKept: all up to entry %d.", s.LastIndex())
	if s.Uncertain > 0 {
		fmt.Fprintf(&b, " %d of them, above entry %d, may never have been committed; what they charged stays charged.", s.Uncertain, s.CommittedAtLeast)
	}
	fmt.Fprintf(&b, `
Lost: what the other nodes agreed on and %s never got, after entry %d or in the place of its last ones.
From here nobody can tell whether there is any. Such admissions are forgotten, and can be given a second time.
`, s.ID, s.LastIndex())
	return b.String()
}

// nextLines are what to type after a recovery.
func (f recoverFlags) nextLines(cfg Config, self NodeConfig) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nStart %s:\n  %s\n", self.ID, serveLine(f.peers, self, f.dataDir))
	if len(cfg.Nodes) == 1 {
		return b.String()
	}
	b.WriteString("Then the others, one after the other. Their old data must not come back: if it is still there, move it away first.\n")
	for _, n := range cfg.Nodes {
		if n.ID != self.ID {
			fmt.Fprintf(&b, "  mv %s %s.lost\n  %s --join %s\n", n.Data, strings.TrimRight(n.Data, "/"), serveLine(f.peers, n, n.Data), self.RESP)
		}
	}
	return b.String()
}

// serveLine starts a node that the file lists, with its data in dataDir.
func serveLine(file string, n NodeConfig, dataDir string) string {
	line := fmt.Sprintf("limitd serve --config %s --node %s", file, n.ID)
	if !samePath(n.Data, dataDir) {
		line += " --data-dir " + dataDir
	}
	return line
}

func samePath(a, b string) bool {
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}
