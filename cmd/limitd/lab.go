package main

import (
	"time"

	"github.com/spf13/cobra"

	"limitd/cluster"
)

// labFlags are hidden flags of `limitd serve` for the fault lab and for benchmarks. No node in service
// has them.
type labFlags struct {
	trace         string
	profiles      string
	snapshotEvery uint64
	portion       int
}

func (l *labFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&l.trace, "trace", "", "write every decision to `FILE`, for checkers (trace/FORMAT.md)")
	c.Flags().Uint64Var(&l.snapshotEvery, "snapshot-every", 0, "take a snapshot each `N` entries, and keep no more of the log behind it")
	c.Flags().IntVar(&l.portion, "snapshot-portion", 0, "make snapshots of `N` changed records or more as those of very many are made")
	c.Flags().StringVar(&l.profiles, "profiles", "", "answer requests for profiles on the Unix socket `FILE` (net/http/pprof)")
	for _, name := range []string{"trace", "snapshot-every", "snapshot-portion", "profiles"} {
		if err := c.Flags().MarkHidden(name); err != nil {
			panic(err) // it has been added above
		}
	}
}

// labSnapshotInterval is how often a node with --snapshot-every looks whether one is
// due.
const labSnapshotInterval = 500 * time.Millisecond

// labPortion is the part of the entries between two snapshots of --snapshot-every that
// makes the second one large, if as many records changed.
const labPortion = 8

// hurry makes snapshots, large ones and followers that need one a matter of seconds.
func (l labFlags) hurry(c *cluster.Config) {
	c.SnapshotPortion = l.portion
	if l.snapshotEvery == 0 {
		return
	}
	if l.portion == 0 {
		c.SnapshotPortion = int(max(1, l.snapshotEvery/labPortion))
	}
	c.SnapshotInterval, c.SnapshotThreshold = labSnapshotInterval, l.snapshotEvery
	c.TrailingBytes, c.TrailingFloor = 1, l.snapshotEvery
}
