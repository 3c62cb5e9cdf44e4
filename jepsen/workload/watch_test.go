package workload

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"limitd/jepsen/history"
)

func TestWhatNodesSayOfThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := memberList("n1", "n2")
		f := &fake{down: map[string]bool{"n2": true}}
		f.answer = func(n string, cmd []string) string {
			switch {
			case cmd[0] == "INFO" && n == "n1":
				return role("leader", 9)
			case cmd[0] == "INFO" && n == "n3":
				return "" // ends the connection
			case cmd[0] == "RL.TIME":
				return "*2\r\n:5000\r\n:1\r\n"
			}
			return allow(n, cmd)
		}
		dir := t.TempDir()
		r, err := history.NewRecorder(dir)
		if err != nil {
			t.Fatal(err)
		}
		w := New(Config{Nodes: members.list, Dial: f.dial, Recorder: r, Workers: 1, Rate: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() {
			time.Sleep(3 * time.Second)
			f.mu.Lock()
			f.down = nil
			f.mu.Unlock()
			time.Sleep(2 * time.Second)
			members.set("n2", "n3", "n4") // n1 is removed
		}()
		w.Watch(ctx)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := history.ReadSamples(dir)
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]int64{}
		for _, s := range all {
			switch {
			case s.ClusterNS != 5e9-s.Time: // answers take no time
				t.Fatalf("%+v", s)
			case s.Node == "n1" && (s.Role != "leader" || s.Term != 9 || s.Time > 5e9):
				t.Errorf("%+v", s)
			case s.Node == "n2" && (s.Role != "follower" || s.Time < 3e9):
				t.Errorf("%+v", s)
			}
			last[s.Node] = s.Time
		}
		if last["n1"] < 4e9 || last["n2"] < 9e9 || last["n4"] < 9e9 || last["n3"] != 0 {
			t.Errorf("last heard of %v", last)
		}
		if w.leading() != "n1" {
			t.Errorf("%q leads, want n1", w.leading())
		}
		if !slices.Contains(f.dials, "n3") {
			t.Error("n3 was never asked")
		}
	})
}

func TestTheLeaderIsTheOneOfTheHighestTerm(t *testing.T) {
	f := &fake{answer: func(n string, cmd []string) string {
		return map[string]string{
			"n1": role("leader", 9),
			"n2": role("leader", 10),
			"n3": role("candidate", 11),
		}[n]
	}}
	d := Dialer(f.dial)
	for want, nodes := range map[string][]string{"n2": {"n1", "n2", "n3"}, "n1": {"n3", "n1"}, "": {"n3"}} {
		if got := d.Leader(nodes); got != want {
			t.Errorf("%v: %q, want %q", nodes, got, want)
		}
	}
}
