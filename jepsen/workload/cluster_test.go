package workload

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"limitd/jepsen/history"
	"limitd/proc"
	"limitd/trace"
)

// cluster is three real processes on loopback.
type cluster struct {
	dir  string
	resp map[string]string
	proc map[string]*proc.Process
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t.TempDir(), map[string]string{}, map[string]*proc.Process{}}
	binary := filepath.Join(c.dir, "limitd")
	if out, err := exec.Command("go", "build", "-o", binary, "limitd/cmd/limitd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := "[raft]\nheartbeat = \"300ms\"\nelection = \"300ms\"\nlease = \"300ms\"\n[limits]\nmin_free_disk = \"1MiB\"\n"
	nodes := []string{"n1", "n2", "n3"}
	addrs, err := proc.FreeAddrs(6)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		c.resp[n] = addrs[i]
		config += fmt.Sprintf("[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n", n, addrs[i], addrs[3+i], filepath.Join(c.dir, "data", n))
	}
	file := filepath.Join(c.dir, "limitd.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"data", "trace", "log"} {
		if err := os.Mkdir(filepath.Join(c.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		log := history.LogFile(c.dir, n)
		p, err := proc.Start(n, log, nil, binary, "serve", "--config", file, "--node", n, "--trace", history.TraceFile(c.dir, n))
		if err != nil {
			t.Fatal(err)
		}
		c.proc[n] = p
		t.Cleanup(func() {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				b, _ := os.ReadFile(log)
				t.Logf("%s printed\n%s", n, b)
			}
		})
	}
	return c
}

func (c *cluster) dial(node string, d time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", c.resp[node], d)
}

// Nothing but what is meant to is refused, every answered call is in a trace, a leader's
// death leaves doubts and no lies, and Jepsen's checkers agree.
func TestRealNodes(t *testing.T) {
	c := startCluster(t)
	r, err := history.NewRecorder(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	members := memberList("n1", "n2", "n3")
	w := New(Config{Seed: 9, Nodes: members.list, Dial: c.dial, Recorder: r, Workers: 16, Rate: 500})
	within := func(d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	if err := w.Drain(within(time.Minute)); err != nil {
		t.Fatalf("the cluster does not come up: %v", err)
	}
	began := r.Now()
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	watched := make(chan struct{})
	go func() {
		w.Watch(watching)
		close(watched)
	}()
	go func() {
		if sleep(watching, time.Now().Add(4*time.Second)) {
			leader := w.leading()
			if p := c.proc[leader]; p != nil {
				if err := p.Kill(); err != nil {
					t.Error(err)
				}
			}
			members.set(slices.DeleteFunc([]string{"n1", "n2", "n3"}, func(n string) bool { return n == leader })...)
		}
	}()
	w.Run(within(7 * time.Second))
	stop()
	<-watched
	drained := r.Now()
	if err := w.Drain(within(time.Minute)); err != nil {
		t.Fatalf("the rest does not come back: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	if err := history.WriteJSON(c.dir, history.RunFile, history.Run{Members: members.list()}); err != nil {
		t.Fatal(err)
	}
	if err := history.WriteEDN(c.dir); err != nil {
		t.Fatal(err)
	}
	judgeSet(t, filepath.Join(c.dir, history.SetFile), 2)
	judgeCounters(t, filepath.Join(c.dir, history.CounterDir))
	events, err := history.ReadEvents(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, events)
	traced := c.tags(t)
	count := map[string]int{}
	for _, e := range events {
		if e.Type == history.Invoke || e.Time < began || e.Time > drained {
			continue
		}
		count[e.F]++
		count[string(e.Type)]++
		switch {
		case e.Type == history.OK && !traced[e.Tag]:
			t.Errorf("event %d, %s %s at %s: answered, and in no trace", e.Index, e.F, e.Key, e.Node)
		case e.Type == history.OK && e.F == "take":
			count[fmt.Sprintf("limited %v", e.Reply.([]any)[0])]++
		case e.Type == history.Fail && strings.HasPrefix(e.Error, "ERR ID ") && slices.Contains([]string{"again", "repeat", "other-call", "refund-id"}, e.F):
			count["refused for the ID"]++ // it is misused, or forgotten by now
		case e.Type == history.Fail && !strings.HasPrefix(e.Error, "CLUSTERDOWN ") && !strings.HasPrefix(e.Error, "TRYAGAIN ") && !strings.HasPrefix(e.Error, "not connected: "):
			t.Errorf("event %d, %s %s: %s", e.Index, e.F, e.Key, e.Error)
		}
	}
	t.Log(count)
	for _, what := range []string{"take", "peek", "refund", "reset", "exists", "ttl", "type", "list", "list-limit", "limited 0", "limited 1"} {
		if count[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
	if count["ok"] < 200 || len(members.list()) != 2 {
		t.Errorf("%d operations were answered, members %v", count["ok"], members.list())
	}
	samples, err := history.ReadSamples(c.dir)
	if err != nil || !slices.ContainsFunc(samples, func(s history.Sample) bool { return s.Role == "leader" && s.Term > 0 && s.ClusterNS > 0 }) {
		t.Errorf("%d samples, and no leader's: %v", len(samples), err)
	}
}

// tags are those that any node decided.
func (c *cluster) tags(t *testing.T) map[uint64]bool {
	t.Helper()
	all := map[uint64]bool{}
	for n := range c.resp {
		err := trace.Read(history.TraceFile(c.dir, n), func(r trace.Row) error {
			for _, call := range r.Calls {
				all[call.Tag] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
