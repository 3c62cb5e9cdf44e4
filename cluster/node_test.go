package cluster

import (
	"fmt"
	"testing"
	"time"
)

func TestThreeNodesAgree(t *testing.T) {
	c := startTestCluster(t, 3)
	l := c.leader()
	for i := range 20 {
		put(t, l, fmt.Sprint("key", i))
	}
	want := l.FSM().State()
	for _, n := range c.nodes {
		eventually(t, "every node to apply "+fmt.Sprint(want.Last), func() bool { return n.FSM().State().Last == want.Last })
		if got := n.FSM().State(); got.Chain != want.Chain || got.T != want.T || got.ClusterID != want.ClusterID {
			t.Errorf("%s holds %+v, the leader %+v", n.cfg.ID, got, want)
		}
		if !has(n, "key7") {
			t.Errorf("%s lacks a key", n.cfg.ID)
		}
	}
	if want.ClusterID == [16]byte{} {
		t.Error("the cluster has no id")
	}
}

// With raft's timeouts it would take one to two seconds.
func TestOneNodeIsReadyAtOnce(t *testing.T) {
	best := time.Hour // of a few: the machine may be busy
	for range 5 {
		c := newTestCluster(t, 1, func(cfg *Config) { cfg.Heartbeat, cfg.Election, cfg.Lease = 0, 0, 0 })
		n := c.nodes[0]
		for _, run := range []string{"new", "again"} {
			begun := time.Now()
			c.start(n)
			put(t, c.leader(), run)
			best = min(best, time.Since(begun))
			if _, ok := n.Touch(); !ok {
				t.Errorf("%s: alone and not in touch", run)
			}
			n.Close()
		}
		if best < 200*time.Millisecond {
			return
		}
	}
	t.Errorf("at best it took %s to the first batch", best)
}
