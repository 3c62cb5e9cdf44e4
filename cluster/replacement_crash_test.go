//go:build failpoint

package cluster

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A child process works on a data directory and is killed on the way; the parent then
// looks at what a start and a second attempt find.

const (
	crashDir  = "LIMITD_CLUSTER_CRASH_DIR"
	crashFile = "LIMITD_CLUSTER_CRASH_FILE" // restore this; empty: recover
	crashPeer = "LIMITD_CLUSTER_CRASH_PEER"
)

// TestCrashChild is the child.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return // this is no child
	}
	self := Member{ID: "n1", Peer: os.Getenv(crashPeer)}
	var err error
	if to := os.Getenv(crashTo); to == "open" {
		err = writeToWal(dir)
	} else if to != "" {
		copyBytes = 1
		_, err = MigrateLog(dir, to)
	} else if file := os.Getenv(crashFile); file != "" {
		_, err = RestoreDir(file, dir, self, testStore())
	} else {
		_, err = Recover(dir, self)
	}
	t.Fatal("the child went on:", err)
}

// crashAt runs the child and wants it to die at the point.
func crashAt(t *testing.T, point, dir, file, peer string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashFile+"="+file, crashPeer+"="+peer, "LIMITD_FAILPOINT="+point)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %s: %v\n%s", point, err, out)
	}
}

// opens says what a start of the node finds: its raft id, or why it does not start.
func opens(t *testing.T, tn *testNode) (string, error) {
	t.Helper()
	n, err := Open(tn.cfg, nil)
	if err != nil {
		return "", err
	}
	defer n.Close()
	return n.raftID, nil
}

// Where the old files are still what the node starts with.
var beforeReplacement = []string{"recover.copied", "commit.begin", "commit.put", "commit.done", "recover.snapshot", "recover.log"}

// Where it does not start.
var amidReplacement = []string{
	"replace.noted", "replace.out=1", "replace.out=2", "replace.out=3", "replace.out=4", "replace.in=1", "replace.in=2", "replace.in=3", "replace.in=4", "replace.done",
}

func TestACrashOfARecoveryLeavesTheOldNodeOrOneThatIsFinished(t *testing.T) {
	_, stopped := oneStopped(t, true)
	sound := dirContents(t, stopped.cfg.DataDir)
	for _, point := range append(beforeReplacement, amidReplacement...) {
		t.Run(point, func(t *testing.T) {
			c := newTestCluster(t, 1)
			n := c.nodes[0]
			dir := n.cfg.DataDir
			writeAll(t, dir, sound)
			crashAt(t, point, dir, "", n.member().Peer)

			raftID, err := opens(t, n)
			switch {
			case slices.Contains(beforeReplacement, point):
				if err != nil || raftID != stopped.raftID {
					t.Errorf("the old node does not start any more: %q, %v", raftID, err)
				}
			case err == nil || !strings.Contains(err.Error(), "run it again"):
				t.Errorf("a start finds %q, %v", raftID, err)
			default:
				if _, err := Inspect(dir); err == nil || !strings.Contains(err.Error(), "run it again") {
					t.Errorf("inspect: %v", err)
				}
				if id, err := NodeOf(dir); id != "n1" || err != nil {
					t.Errorf("it is node %q, %v", id, err)
				}
				if _, err := Recover(dir, Member{ID: "n1", Peer: "127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), n.member().Peer) {
					t.Errorf("another address: %v", err)
				}
				crashAt(t, "replace.done", dir, "", n.member().Peer) // and the second attempt, at its end
			}

			r := recovered(t, n)
			wantReplaced(t, n, r.Backup, nil)
			c.start(n)
			c.leader()
			if !has(n, "key3") || !has(n, "later") || n.FSM().State().Generation != 2 || n.raftID != r.NewRaftID || r.RaftID != stopped.raftID {
				t.Errorf("%s goes on with %+v after %+v", n.raftID, n.FSM().State(), r)
			}
			n.Close()
		})
	}
}

func TestACrashOfARestoreLeavesADirectoryThatDoesNotStart(t *testing.T) {
	_, file := savedState(t)
	points := []string{
		"create.built", "create.synced", "create.renamed", "create.dirsynced",
		"install.begin", "install.batch", "install.built", "install.synced", "install.renamed", "install.dirsynced", "install.swapped", "install.hooked",
		"restore.snapshot", "restore.log", "replace.noted", "replace.in=1", "replace.in=2", "replace.in=3", "replace.in=4", "replace.done",
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			n := newTestCluster(t, 1).nodes[0]
			dir := n.cfg.DataDir
			crashAt(t, point, dir, file, n.member().Peer)
			if raftID, err := opens(t, n); err == nil || !strings.Contains(err.Error(), "remove what is in the directory") {
				t.Errorf("a start finds %q, %v", raftID, err)
			}
			if _, err := RestoreDir(file, dir, n.member(), n.cfg.LogStore); err == nil || !strings.Contains(err.Error(), "remove what is in the directory") {
				t.Errorf("a second restore: %v", err)
			}
			if _, err := Recover(dir, n.member()); err == nil || !strings.Contains(err.Error(), "remove what is in the directory") {
				t.Errorf("a recovery: %v", err)
			}
			left, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range left {
				os.RemoveAll(filepath.Join(dir, f.Name()))
			}
			if _, err := RestoreDir(file, dir, n.member(), n.cfg.LogStore); err != nil {
				t.Error(err)
			}
		})
	}
	nobodyForgets(t, slices.Concat(points, beforeReplacement, amidReplacement, slices.Collect(maps.Keys(migrationPoints)), walPoints))
}

// nobodyForgets wants each crash point of this package among those given.
func nobodyForgets(t *testing.T, tested []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\bFailpoint\("([^"]+)"\)`)
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(src), -1) {
			if !slices.ContainsFunc(tested, func(p string) bool { return p == m[1] || strings.HasPrefix(p, m[1]+"=") }) {
				t.Error("nobody crashes at", m[1])
			}
		}
	}
}

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		to := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
