package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// otherStore is the one that a directory is migrated to.
func otherStore(store string) string {
	if store == StoreBolt {
		return StoreWal
	}
	return StoreBolt
}

// A node goes from one store to the other and back; nothing is forgotten, and a start
// with the wrong one in the configuration changes nothing.
func TestMigratedNodeGoesOn(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n := c.nodes[0]
	dir := n.cfg.DataDir
	put(t, c.leader(), "before")
	if err := n.takeSnapshot(n.raft.Load()); err != nil {
		t.Fatal(err)
	}
	put(t, n, "later")
	if _, err := MigrateLog(dir, otherStore(n.cfg.LogStore)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("while the node runs: %v", err)
	}
	for round := range 2 {
		n.Close()
		from := n.cfg.LogStore
		to := otherStore(from)
		st := n.FSM().State()

		wrong := n.cfg
		wrong.LogStore = to
		before := dirContents(t, dir)
		refusesStore(t, wrong, from, to)
		if after := dirContents(t, dir); !mapsEqual(before, after) {
			t.Errorf("round %d: the refused start has changed files", round)
		}

		m, err := MigrateLog(dir, to)
		if err != nil || m.From != from || m.To != to || m.Last == 0 || m.Values < 2 || !slices.Equal(m.Removed, []string{logPath(dir, from)}) {
			t.Fatalf("it did %+v, %v", m, err)
		}
		if again, err := MigrateLog(dir, to); err != nil || again.From != to || again.Last != 0 || len(again.Removed) != 0 {
			t.Errorf("once more it did %+v, %v", again, err)
		}
		refusesStore(t, n.cfg, to, from)
		n.cfg.LogStore = to
		raftID := n.raftID
		c.start(n)
		c.leader()
		if now := n.FSM().State(); !has(n, "before") || !has(n, "later") || n.raftID != raftID || now.Last < st.Last || n.Status().LogStore != to {
			t.Errorf("%s in %s goes on with %+v after %s with %+v", n.raftID, to, now, raftID, st)
		}
	}
}

// refusesStore wants an error that names both stores and the command.
func refusesStore(t *testing.T, cfg Config, made, want string) {
	t.Helper()
	n, err := Open(cfg, nil)
	if err == nil {
		n.Close()
		t.Fatalf("a directory of %s was opened with %s", made, want)
	}
	for _, text := range []string{`"` + made + `"`, `"` + want + `"`, "limitd migrate-log --data-dir " + cfg.DataDir + " --to " + want} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the refusal does not say %s: %v", text, err)
		}
	}
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if b[name] != text {
			return false
		}
	}
	return true
}

// A node that is told no store keeps the one that its directory was made with, and makes a
// new directory with the default one.
func TestADirectoryKeepsItsStore(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1, func(cfg *Config) { cfg.LogStore = "" })
	n := c.nodes[0]
	put(t, c.leader(), "before")
	if store := n.Status().LogStore; store != NewStore {
		t.Errorf("a new directory has %s", store)
	}
	n.Close()
	to := otherStore(NewStore)
	if _, err := MigrateLog(n.cfg.DataDir, to); err != nil {
		t.Fatal(err)
	}
	c.start(n)
	c.leader()
	if store := n.Status().LogStore; store != to || !has(n, "before") {
		t.Errorf("a directory of %s goes on with %s", to, store)
	}
}

// A directory of before there was a choice has no file that names the store.
func TestStoreIsKnownWithoutItsFile(t *testing.T) {
	t.Parallel()
	for _, store := range LogStores {
		for what, spoil := range map[string]func(path string) error{
			"missing": os.Remove,
			"damaged": func(path string) error { return os.WriteFile(path, []byte("limitd-log-store 1\nwol\n"), 0o600) },
			"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		} {
			t.Run(store+" "+what, func(t *testing.T) {
				t.Parallel()
				c := startTestCluster(t, 1, func(cfg *Config) { cfg.LogStore = store })
				n := c.nodes[0]
				put(t, c.leader(), "before")
				n.Close()
				path := filepath.Join(n.cfg.DataDir, storeFile)
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := spoil(path); err != nil {
					t.Fatal(err)
				}
				wrong := n.cfg
				wrong.LogStore = otherStore(store)
				refusesStore(t, wrong, store, wrong.LogStore)
				n.cfg.LogStore = "" // whatever it is
				c.start(n)
				c.leader()
				if b, _ := os.ReadFile(path); !has(n, "before") || n.Status().LogStore != store || string(b) != string(whole) {
					t.Errorf("it goes on, and the file says %q", b)
				}
			})
		}
	}
}

func TestMigrationRefusesWhatItCannotTrust(t *testing.T) {
	t.Parallel()
	for _, store := range LogStores {
		c := startTestCluster(t, 1, func(cfg *Config) { cfg.LogStore = store })
		n := c.nodes[0]
		put(t, c.leader(), "before")
		n.Close()
		dir := n.cfg.DataDir
		if _, err := MigrateLog(dir, "rocks"); err == nil || !strings.Contains(err.Error(), `"rocks"`) {
			t.Errorf("another store: %v", err)
		}
		path := logPath(dir, store)
		if store == StoreWal {
			path = filepath.Join(path, walMetaName)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		flipped := regexp.MustCompile(`(?s)CurrentTerm.{9}`).ReplaceAllStringFunc(string(b), func(row string) string { return row[:19] + "x" })
		if err := os.WriteFile(path, []byte(flipped), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := MigrateLog(dir, otherStore(store)); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a damaged %s: %v", store, err)
		}
		if made, named, err := madeWith(dir); made != store || !named || err != nil {
			t.Errorf("afterwards it is of %s, %v, %v", made, named, err)
		}
		if _, err := MigrateLog(t.TempDir(), StoreWal); err == nil || !strings.Contains(err.Error(), "holds no node") {
			t.Errorf("an empty directory: %v", err)
		}
	}
}
