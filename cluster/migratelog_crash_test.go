//go:build failpoint

package cluster

import "testing"

const crashTo = "LIMITD_CLUSTER_CRASH_TO" // migrate to this log store

// Where a migration may be killed, and which store is the node's then: the old one, or
// the new one.
var migrationPoints = map[string]bool{
	"migrate.created": false, "migrate.batch=1": false, "migrate.batch=2": false, "migrate.copied": false, "migrate.renamed": false,
	"migrate.compared": false, "migrate.named": true, "migrate.removed": true,
}

// However a migration ends, the directory is whole, with one of the stores; the other
// one is refused; and a second run finishes.
func TestACrashOfAMigrationLeavesOneStoreOrTheOther(t *testing.T) {
	for _, from := range LogStores {
		stopped := startTestCluster(t, 1, func(cfg *Config) { cfg.LogStore = from })
		put(t, stopped.leader(), "before")
		put(t, stopped.nodes[0], "later")
		stopped.nodes[0].Close()
		sound := dirContents(t, stopped.nodes[0].cfg.DataDir)
		for point, switched := range migrationPoints {
			t.Run(from+" "+point, func(t *testing.T) {
				c := newTestCluster(t, 1, func(cfg *Config) { cfg.LogStore = from })
				n := c.nodes[0]
				dir, to := n.cfg.DataDir, otherStore(from)
				writeAll(t, dir, sound)
				t.Setenv(crashTo, to)
				crashAt(t, point, dir, "", n.member().Peer)
				for range 2 { // started, and killed again
					made, wrong := from, to
					if switched {
						made, wrong = to, from
					}
					cfg := n.cfg
					cfg.LogStore = wrong
					refusesStore(t, cfg, made, wrong)
					n.cfg.LogStore = made
					c.start(n)
					if c.leader(); !has(n, "before") || !has(n, "later") {
						t.Error("keys are gone")
					}
					n.Close()
					if !switched {
						crashAt(t, point, dir, "", n.member().Peer)
					}
				}
				if m, err := MigrateLog(dir, to); err != nil || m.To != to || (m.From == to) != switched {
					t.Errorf("the last run did %+v, %v", m, err)
				}
				if names := topNames(t, dir); len(names) != len(replacedOf(to)) {
					t.Errorf("it left %v", names)
				}
				n.cfg.LogStore = to
				c.start(n)
				if c.leader(); !has(n, "before") || !has(n, "later") || n.raftID != stopped.nodes[0].raftID {
					t.Error("after the migration keys are gone")
				}
				n.Close()
			})
		}
	}
}
