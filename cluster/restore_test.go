package cluster

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// savedState is a running cluster of one, and a file with its state.
func savedState(t *testing.T) (*testNode, string) {
	t.Helper()
	c := startTestCluster(t, 1)
	n := c.leader()
	put(t, n, "key0")
	put(t, n, "key1")
	path, err := n.SaveSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	put(t, n, "after it was saved")
	return n, path
}

// restored is a node that is not started yet, with the saved state.
func restored(t *testing.T, path string, id string) (*testNode, Survey) {
	t.Helper()
	c := newTestCluster(t, 1)
	n := c.nodes[0]
	n.cfg.ID, n.cfg.Members[0].ID = id, id
	n.cfg.DataDir = filepath.Join(n.cfg.DataDir, "new")
	s, err := RestoreDir(path, n.cfg.DataDir, n.member(), n.cfg.LogStore)
	if err != nil {
		t.Fatal(err)
	}
	return n, s
}

func TestRestoredNodeIsANewClusterWithTheSavedState(t *testing.T) {
	t.Parallel()
	from, path := savedState(t)
	was := from.FSM().State()
	n, s := restored(t, path, "x1")
	if names := topNames(t, n.cfg.DataDir); !slices.Equal(names, replacedOf(n.cfg.LogStore)) {
		t.Errorf("the directory holds %v", names)
	}
	n.clock.wall.Add(int64(time.Hour)) // it may have been saved long ago
	n.cluster.start(n)
	n.cluster.leader()
	if !has(n, "key0") || !has(n, "key1") || has(n, "after it was saved") {
		t.Error("it does not hold what was saved")
	}
	st := n.FSM().State()
	if st.ClusterID == was.ClusterID || st.Generation != 1 || n.raftID != s.RaftID || nodeID(n.raftID) != "x1" || s.Records != 2 {
		t.Errorf("it goes on as %s with %+v and told %+v", n.raftID, st, s)
	}
	if gone := time.Duration(st.T - s.Time); gone < 59*time.Minute || gone > 61*time.Minute {
		t.Errorf("cluster time moved by %s, the wall clock by an hour", gone)
	}
	put(t, n, "new")
	n.Close()
	n.cluster.start(n)
	if n.cluster.leader(); !has(n, "new") || !has(n, "key0") {
		t.Error("after a restart keys are gone")
	}

	// The two are strangers from now on.
	for _, way := range [][2]*testNode{{from, n}, {n, from}} {
		var ref *refusal
		_, err := way[0].peers.dial(t.Context(), way[1].member().Peer, purposeRaft, time.Second)
		if !errors.As(err, &ref) || ref.code != refusedCluster {
			t.Errorf("%s meets %s: %v", way[0].raftID, way[1].raftID, err)
		}
	}
}

func TestTimeDoesNotGoBackWhenTheWallClockIsBehindTheSavedState(t *testing.T) {
	t.Parallel()
	_, path := savedState(t)
	n, s := restored(t, path, "x1")
	n.clock.wall.Add(-int64(10 * time.Hour))
	n.cluster.start(n)
	n.cluster.leader()
	if gone := time.Duration(n.FSM().Time() - s.Time); gone < 0 || gone > time.Minute {
		t.Errorf("cluster time moved by %s", gone)
	}
}

func TestRestoreTakesWholeFilesAndNewDirectoriesOnly(t *testing.T) {
	t.Parallel()
	from, path := savedState(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	self := Member{ID: "x1", Peer: freeAddr(t)}
	cut, flipped := filepath.Join(t.TempDir(), "cut"), filepath.Join(t.TempDir(), "flipped")
	os.WriteFile(cut, whole[:len(whole)-20], 0o600)
	whole[len(whole)-20] ^= 1
	os.WriteFile(flipped, whole, 0o600)
	for file, word := range map[string]string{cut: "ends after", flipped: "checksum", filepath.Join(t.TempDir(), "gone"): "no such file"} {
		dir := filepath.Join(t.TempDir(), "new")
		_, err := RestoreDir(file, dir, self, StoreBolt)
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v; want %q", err, word)
		}
		if _, err := RestoreDir(path, dir, self, StoreBolt); err != nil {
			t.Errorf("after that, a whole file: %v", err)
		}
	}

	used := t.TempDir()
	os.WriteFile(filepath.Join(used, "notes.txt"), []byte("mine"), 0o600)
	running := from.cfg.DataDir
	for _, dir := range []string{used, running} {
		before := dirContents(t, dir)
		if _, err := RestoreDir(path, dir, self, StoreBolt); err == nil || !strings.Contains(err.Error(), dir+" is not empty") {
			t.Error(err)
		}
		if after := dirContents(t, dir); !maps.Equal(before, after) {
			t.Error("files have changed")
		}
	}
}
