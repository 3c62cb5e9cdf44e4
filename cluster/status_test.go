package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"limitd/snapshot"
)

func TestEveryNodeTellsTheSameOfTheCluster(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	put(t, c.leader(), "a")
	c.converge()
	var wrong []string
	for began := time.Now(); ; {
		if wrong = c.tellOtherwise(); len(wrong) == 0 || time.Since(began) > testPatience { // they hear of each other, and of a new leader, in time
			break
		}
		time.Sleep(testHeartbeat / 10)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// tellOtherwise is what nodes say of the cluster that is not so.
func (c *testCluster) tellOtherwise() (wrong []string) {
	l := c.leader()
	for _, n := range c.nodes {
		rows := n.Nodes()
		if len(rows) != 3 {
			wrong = append(wrong, fmt.Sprintf("%s knows %d nodes", n.cfg.ID, len(rows)))
			continue
		}
		for i, r := range rows {
			of := c.nodes[i]
			role := "voter"
			if of == l {
				role = "leader"
			}
			if m := of.cfg.self(); r.ID != m.ID || r.Resp != m.Resp || r.Peer != m.Peer || r.RaftID != of.raftID || r.Role != role ||
				r.ContactMS < 0 || r.Version != "test" || r.Applied == 0 {
				wrong = append(wrong, fmt.Sprintf("%s says of %s (%s): %+v", n.cfg.ID, m.ID, role, r))
			}
		}
		s := n.Status()
		role := "follower"
		if n == l {
			role = "leader"
		}
		if s.Role != role || s.LeaderID != l.cfg.ID || s.LeaderRaftID != l.raftID || s.LeaderResp != l.cfg.self().Resp ||
			s.Voters != 3 || !s.Ready || len(s.ClusterID) != 32 || s.Generation != 1 || s.DiskFree == 0 || s.LogWrites == 0 {
			wrong = append(wrong, fmt.Sprintf("%s, a %s: %+v", n.cfg.ID, role, s))
		}
	}
	return wrong
}

func TestNodeThatWaitsForItsClusterSaysSo(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	n := c.nodes[1]
	c.start(n)
	if s := n.Status(); s.Role != "waiting" || s.Ready || s.LeaderID != "" {
		t.Errorf("%+v", s)
	}
	for _, r := range n.Nodes() {
		if r.Role != "none" || r.RaftID != "" {
			t.Errorf("%+v", r)
		}
	}
	if err := n.Transfer(""); err == nil {
		t.Error("leadership was handed over by nobody")
	}
	if _, err := n.SaveSnapshot(); err == nil {
		t.Error("a snapshot of nothing")
	}
}

func TestSavedSnapshotsOfEqualStatesAreEqual(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	for _, key := range []string{"a", "b", "c"} {
		put(t, c.leader(), key)
	}
	c.converge()
	eventually(t, "all to know what all read", func() bool { // one version has one way to write a state
		return !slices.ContainsFunc(c.nodes, func(n *testNode) bool { return n.writes() != ownVersions })
	})
	var first []byte
	for _, n := range c.nodes {
		path, err := n.SaveSnapshot()
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(path) != filepath.Join(n.cfg.DataDir, "backups") {
			t.Errorf("saved to %s", path)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := snapshot.Inspect(bytes.NewReader(b)); err != nil || info.Records != 4 {
			t.Errorf("%+v, %v", info, err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("%s saved other bytes than %s", n.cfg.ID, c.nodes[0].cfg.ID)
		}
	}
}

func TestDisksBelowTheirFloor(t *testing.T) {
	for low := range 4 { // so many nodes have little disk left
		t.Run(fmt.Sprint(low, " of 3"), func(t *testing.T) {
			t.Parallel()
			c := startTestCluster(t, 3, func(cfg *Config) {
				if cfg.ID <= fmt.Sprint("n", low) {
					cfg.MinFreeDisk = 1 << 62
				}
			})
			last := c.nodes[2]
			if l := c.leader(); l != last { // n3's own disk is the last to be low
				eventually(t, "n3 to be caught up", func() bool { _, err := l.successor("n3"); return err == nil })
				if err := l.Transfer("n3"); err != nil {
					t.Fatal(err)
				}
				eventually(t, "n3 to lead", last.Leading)
			}
			for _, n := range c.nodes[:2] {
				eventually(t, "the leader to hear from "+n.cfg.ID, func() bool { _, ok := last.polledPeer(n.cfg.ID); return ok })
			}
			last.judgeDisks()
			if got, want := last.DiskLow(), low >= 2; got != want {
				t.Errorf("the leader says %v", got)
			}
		})
	}
}

func TestSnapshotIsTakenWhenEnoughHasChanged(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1, func(cfg *Config) { cfg.SnapshotThreshold = 10; cfg.SnapshotInterval = 20 * time.Millisecond })
	n := c.leader()
	for i := range 20 {
		put(t, n, string(rune('a'+i)))
	}
	eventually(t, "raft's own snapshot", func() bool { return n.Status().SnapshotIndex > 10 })
}

// Raft repeats itself at every attempt; the log must not.
func TestRaftsLogIsQuiet(t *testing.T) {
	var out bytes.Buffer
	l := raftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Info("entering follower state", "leader", "n1")
	l.Debug("votes", "n", 2)
	l.Warn("failed to get previous log", "previous-index", 1)
	if out.Len() > 0 {
		t.Errorf("raft's daily business was logged: %s", out.String())
	}
	for range 5 {
		l.Error("failed to heartbeat to", "peer", "n2", "servers", hclog.Fmt("%d of %d", 1, 3))
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "raft: failed to heartbeat to") ||
		!strings.Contains(got, `servers="1 of 3"`) || !strings.Contains(got, "WARN") {
		t.Errorf("five times the same trouble gave\n%s", got)
	}
	l.Warn("something else")
	if got := out.String(); strings.Count(got, "\n") != 2 {
		t.Errorf("another message was dropped:\n%s", got)
	}
}
