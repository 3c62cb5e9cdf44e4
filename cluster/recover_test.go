package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

func (tn *testNode) member() Member { return tn.cfg.self() }

// dirContents reads all files of a data directory but the locks.
func dirContents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == lockName || d.Name() == "snapshot.lock" {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// threeStopped is a cluster of three, all stopped, that had agreed on some keys. The
// last node has a snapshot, and more in its log.
func threeStopped(t *testing.T, change ...func(*Config)) *testCluster {
	t.Helper()
	c := startTestCluster(t, 3, change...)
	l := c.leader()
	for i := range 20 {
		put(t, l, fmt.Sprint("key", i))
	}
	n3 := c.nodes[2]
	eventually(t, "n3 to have the keys", func() bool { return has(n3, "key19") })
	if err := n3.takeSnapshot(n3.raft.Load()); err != nil {
		t.Fatal(err)
	}
	put(t, l, "later")
	last := l.FSM().State().Last
	eventually(t, "n3 to have all", func() bool { return n3.FSM().State().Last >= last })
	c.stop()
	return c
}

// recovered recovers a stopped node.
func recovered(t *testing.T, tn *testNode) Recovery {
	t.Helper()
	r, err := Recover(tn.cfg.DataDir, tn.member())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecoveredNodeGoesOnAloneWithAllThatItHad(t *testing.T) {
	t.Parallel()
	c := threeStopped(t)
	n3 := c.nodes[2]
	want := n3.FSM().State()
	old := dirContents(t, n3.cfg.DataDir)
	r := recovered(t, n3)
	if r.ID != "n3" || r.RaftID != n3.raftID || r.NewRaftID == r.RaftID || nodeID(r.NewRaftID) != "n3" ||
		r.Survey.Generation != 1 || r.Generation != 2 || r.Last < want.Last || r.Time < want.T || r.Records != 21 || len(r.Voters) != 3 {
		t.Errorf("it says %+v of a node with %+v", r, want)
	}
	wantReplaced(t, n3, r.Backup, old)

	if _, err := Recover(n3.cfg.DataDir, n3.member()); err == nil || !strings.Contains(err.Error(), "only voter") {
		t.Errorf("once more: %v", err)
	}
	c.start(n3) // the other two are away
	c.leader(c.nodes[:2]...)
	for _, key := range []string{"key0", "key19", "later"} {
		if !has(n3, key) {
			t.Errorf("%s is gone", key)
		}
	}
	put(t, n3, "new")
	st := n3.FSM().State()
	if st.Generation != 2 || st.ClusterID != want.ClusterID || n3.raftID != r.NewRaftID || st.T < r.Time {
		t.Errorf("%s goes on with %+v", n3.raftID, st)
	}
	n3.Close()
	c.start(n3) // its log continues the new snapshot
	if c.leader(c.nodes[:2]...); !has(n3, "new") || !has(n3, "key0") {
		t.Error("after a restart keys are gone")
	}
}

// What a leader had stored when it was cut off was perhaps never committed. It is kept.
func TestUncertainEntriesAreCountedAndKept(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "sure")
	l = c.leader()
	sure := l.FSM().State().Last
	c.sever(l)
	if _, o := tryPut(l, "perhaps"); o == fsm.Applied {
		t.Fatal("a batch took effect without a majority")
	}
	end, err := l.logs.LastIndex()
	if err != nil || end <= sure {
		t.Fatalf("the log ends at %d, the last batch is %d (%v)", end, sure, err)
	}
	for _, other := range c.others(l) {
		if has(other, "perhaps") {
			t.Fatal("others have the batch")
		}
	}
	c.stop()
	s, err := Inspect(l.cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if s.LastIndex() != end || s.CommittedAtLeast < sure || s.Uncertain == 0 || s.CommittedAtLeast+s.Uncertain != end {
		t.Errorf("last %d, at least %d committed, %d uncertain; the log ends at %d", s.LastIndex(), s.CommittedAtLeast, s.Uncertain, end)
	}
	recovered(t, l)
	c.start(l)
	if c.leader(c.others(l)...); !has(l, "sure") || !has(l, "perhaps") {
		t.Error("an entry of the log was dropped")
	}
}

func TestInspectionChangesNothing(t *testing.T) {
	t.Parallel()
	c := threeStopped(t)
	dir := c.nodes[2].cfg.DataDir
	before := dirContents(t, dir)
	s, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != "n3" || s.SnapshotIndex == 0 || s.LogLast <= s.SnapshotIndex || s.Records != 21 {
		t.Errorf("it says %+v", s)
	}
	if after := dirContents(t, dir); !maps.Equal(before, after) {
		t.Error("files have changed")
	}
	c.start(c.nodes[2]) // and the node is what it was
	if c.nodes[2].raftID != s.RaftID {
		t.Errorf("%s was %s", c.nodes[2].raftID, s.RaftID)
	}
}

func TestDirectoriesThatCannotBeRecoveredAreNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	c := threeStopped(t, func(cfg *Config) { cfg.LogStore = StoreBolt }) // its file is damaged byte by byte
	n3 := c.nodes[2]
	sound := dirContents(t, n3.cfg.DataDir)
	file := func(name string) string { return sound[name] }
	flip := func(s string, at int) string {
		b := []byte(s)
		b[at] ^= 1
		return string(b)
	}
	inside := strings.Index(file(snapshotName), "state of key7")
	logged := strings.LastIndex(file(logName), "state of later")
	if inside < 0 || logged < 0 {
		t.Fatal("the files do not hold what they should")
	}
	for _, tc := range []struct {
		name  string
		files map[string]string // "": the file is removed
		words []string
	}{
		{"no log", map[string]string{logName: ""}, []string{logName, "snapshot restore"}},
		{"an empty log", map[string]string{logName: " "}, []string{logName, "snapshot restore"}},
		{"a log that was cut off", map[string]string{logName: file(logName)[:9000]}, []string{logName, "cut off"}},
		{"a damaged entry", map[string]string{logName: flip(file(logName), logged)}, []string{logName, "entry", "checksum"}},
		{"a damaged record", map[string]string{snapshotName: flip(file(snapshotName), inside)}, []string{snapshotName, "key7", "move it away"}},
		{"no identity", map[string]string{identityFile: ""}, []string{identityFile, "which node"}},
		{"a damaged identity", map[string]string{identityFile: flip(file(identityFile), 20)}, []string{identityFile}},
		{"nothing but an identity", map[string]string{logName: "", snapshotName: ""}, []string{logName}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range sound {
				if change, ok := tc.files[name]; ok {
					text = change
				}
				if text != "" {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := dirContents(t, dir)
			_, err := Inspect(dir)
			_, err2 := Recover(dir, n3.member())
			for _, err := range []error{err, err2} {
				if err == nil {
					t.Fatal("it was taken for whole")
				}
				for _, w := range append(tc.words, dir) {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("it does not say %q: %v", w, err)
					}
				}
			}
			if after := dirContents(t, dir); !maps.Equal(before, after) {
				t.Error("files have changed")
			}
		})
	}
	t.Run("the snapshot can be done without", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{identityFile, logName} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(sound[name]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := Recover(dir, n3.member()); err != nil || r.Records != 21 || r.SnapshotIndex != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("another node", func(t *testing.T) {
		_, err := Recover(n3.cfg.DataDir, c.nodes[0].member())
		if err == nil || !strings.Contains(err.Error(), `"n3"`) || !strings.Contains(err.Error(), `"n1"`) {
			t.Error(err)
		}
	})
	t.Run("an empty directory", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := Recover(dir, n3.member()); err == nil || !strings.Contains(err.Error(), "holds no node") {
			t.Error(err)
		}
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("it left %v", files)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if _, err := Inspect(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("in use", func(t *testing.T) {
		c.start(n3)
		for _, f := range []func() error{
			func() error { _, err := Inspect(n3.cfg.DataDir); return err },
			func() error { _, err := Recover(n3.cfg.DataDir, n3.member()); return err },
		} {
			if err := f(); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Error(err)
			}
		}
	})
}

// The others come back with their old data, and are a majority of the old
// configuration. They may go on among themselves; the recovered node hears nothing.
func TestNodesLeftBehindByARecoveryCannotMix(t *testing.T) {
	t.Parallel()
	c := threeStopped(t)
	n3 := c.nodes[2]
	recovered(t, n3)
	for _, tn := range c.nodes {
		c.start(tn)
	}
	c.leader(c.nodes[:2]...)
	old := c.leader(n3)
	put(t, n3, "of the new generation")
	if _, o := tryPut(old, "of the old one"); o != fsm.Applied {
		t.Logf("the old majority: outcome %v", o)
	}
	var ref *refusal
	eventually(t, "n3 to refuse the old leader, and to say why", func() bool {
		_, err := old.peers.askAnyone(n3.member().Peer, checkEvery)
		return errors.As(err, &ref) && ref.code == refusedGeneration
	})
	for _, w := range []string{"generation 1", "generation 2", "Stop " + old.cfg.ID, "--join"} {
		if !strings.Contains(ref.Error(), w) {
			t.Errorf("the refusal does not say %q: %v", w, ref)
		}
	}
	eventually(t, "the old nodes to be refused by n3", func() bool {
		_, err := n3.peers.askAnyone(old.member().Peer, checkEvery)
		return errors.As(err, &ref) && ref.code == refusedGeneration
	})
	// What they agree on meanwhile stays with them, though raft tries all the time.
	for i := range 30 {
		put(t, n3, fmt.Sprint("new", i))
		tryPut(old, fmt.Sprint("old", i))
	}
	first, _ := n3.logs.FirstIndex()
	last, _ := n3.logs.LastIndex()
	for i := first; i <= last; i++ {
		l := entryAt(t, n3, i)
		if bytes.Contains(l, []byte("old")) {
			t.Fatalf("entry %d of the recovered node is of the old ones", i)
		}
	}
	if has(n3, "of the old one") || has(old, "of the new generation") {
		t.Error("state went over the border")
	}
}

func TestTimeGoesOnFromTheReceiptAfterARecovery(t *testing.T) {
	t.Parallel()
	c := threeStopped(t)
	n3 := c.nodes[2]
	r := recovered(t, n3)
	n3.clock.boot.Add(int64(time.Hour))
	n3.clock.wall.Add(int64(100 * time.Hour)) // whatever it says
	c.start(n3)
	c.leader(c.nodes[:2]...)
	gone := time.Duration(n3.FSM().Time() - r.Time)
	if gone < time.Hour-time.Minute || gone > time.Hour+time.Minute {
		t.Errorf("cluster time moved by %s in an hour", gone)
	}
}

func TestReceiptOfAnotherBootIsNotUsedAfterARecovery(t *testing.T) {
	t.Parallel()
	c := threeStopped(t)
	n3 := c.nodes[2]
	r := recovered(t, n3)
	n3.clock.bootID = "boot-2"
	n3.clock.wall.Add(int64(3 * time.Hour))
	c.start(n3)
	c.leader(c.nodes[:2]...)
	gone := time.Duration(n3.FSM().Time() - r.Time)
	if gone < 3*time.Hour-time.Minute || gone > 3*time.Hour+time.Minute {
		t.Errorf("cluster time moved by %s, the wall clock by 3h", gone)
	}
}

func entryAt(t testing.TB, n *testNode, i uint64) []byte {
	t.Helper()
	var l raft.Log
	if err := n.logs.GetLog(i, &l); err != nil {
		t.Fatal(err)
	}
	return l.Data
}

// Against what the document says, two survivors are recovered, each for itself. They
// have one cluster id and one generation, and find each other through the file.
func TestTwoRecoveriesOfOneClusterDoNotTakeEachOtherForTheirOwn(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "k")
	c.converge()
	behind := c.others(l)[0]
	c.sever(behind)
	for i := range 20 { // so that the configurations have other indexes
		put(t, l, fmt.Sprint("more", i))
	}
	c.stop()
	ahead := c.others(behind)
	if ra, rb := recovered(t, ahead[0]), recovered(t, behind); ra.Generation != rb.Generation || ra.LastIndex() <= rb.LastIndex() {
		t.Fatalf("generations %d and %d, last entries %d and %d", ra.Generation, rb.Generation, ra.LastIndex(), rb.LastIndex())
	}
	both := []*testNode{ahead[0], behind}
	for _, tn := range both {
		c.start(tn)
	}
	for i, tn := range both {
		eventually(t, tn.cfg.ID+" to lead alone", tn.Leading)
		put(t, tn, "its own")
		_, err := tn.peers.askAnyone(both[1-i].member().Peer, checkEvery)
		if err != nil {
			t.Errorf("it does not hear the other: %v", err)
		}
	}
	for range 3 {
		for _, tn := range both {
			tn.pollOnce()
			if err := tn.removedReason(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
