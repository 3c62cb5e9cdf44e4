package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"limitd/snapshot"
)

// saveTimeout bounds RL.SNAPSHOT SAVE, which writes all there is.
const saveTimeout = 10 * time.Minute

func newSnapshot() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save the state of a node, look into saved states, and start a cluster from one",
		Args:  cobra.NoArgs,
		RunE:  showHelp,
	}
	c.flags(cmd)
	cmd.AddCommand(newSnapshotSave(&c), newSnapshotInspect(&c), newSnapshotRestore(&c))
	return cmd
}

func newSnapshotSave(c *client) *cobra.Command {
	return &cobra.Command{
		Use:     "save",
		Short:   "Write the state to a file on the node asked, and print its path there",
		Example: "  limitd snapshot save --addr 127.0.0.1:6381",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := c.call(cmd.Context(), saveTimeout, "RL.SNAPSHOT", "SAVE")
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"path": path})
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
}

func newSnapshotInspect(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect FILE",
		Short: "Check a saved state from end to end and show what is in it",
		Long: `Check a saved state from end to end and show what is in it. No node is asked.

Two nodes that stand at the same batch save the same bytes: same last_batch, same sha256.`,
		Example: "  limitd snapshot inspect limitd-data/backups/FILE",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ps, err := inspectSnapshot(args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if c.json {
				return printJSON(cmd.OutOrStdout(), object(ps))
			}
			return printPairs(cmd.OutOrStdout(), ps)
		},
	}
}

// inspectSnapshot reads a stream to its end; damage anywhere in it is an error.
func inspectSnapshot(file string) ([]pair, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	var size, records, expired, states int64
	var head snapshot.Header
	h, err := snapshot.ReadStream(io.TeeReader(f, io.MultiWriter(sum, (*byteCount)(&size))),
		func(h snapshot.Header) error { head = h; return nil },
		func(r snapshot.Record) error {
			records++
			states += int64(len(r.State))
			if r.Expiry <= head.T {
				expired++
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return []pair{
		{"cluster_id", hex.EncodeToString(h.ClusterID[:])},
		{"generation", h.Generation},
		{"last_batch", h.Last},
		{"chain_hash", fmt.Sprintf("%016x", h.Chain)},
		{"cluster_time", time.Unix(0, h.T).UTC().Format(time.RFC3339Nano)},
		{"calendar_offset", time.Duration(h.Offset).String()},
		{"records", records},
		{"records_expired", expired},
		{"state_bytes", states},
		{"file_bytes", size},
		{"sha256", hex.EncodeToString(sum.Sum(nil))},
	}, nil
}

// byteCount counts what is written to it.
type byteCount int64

func (n *byteCount) Write(p []byte) (int, error) {
	*n += byteCount(len(p))
	return len(p), nil
}
