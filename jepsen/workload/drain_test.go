package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"limitd/jepsen/history"
)

// drainOf asks for a while and drains, with so much virtual time for it.
func drainOf(t *testing.T, f *fake, patience time.Duration) (events []history.Event, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, end := f.start(t, Config{Seed: 5, Workers: 8, Rate: 200})
		asking, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		w.Run(asking)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err = w.Drain(ctx)
		took = time.Since(began)
		events = end()
	})
	return events, took, err
}

func TestTheEndReadsEveryKeyThroughEveryNode(t *testing.T) {
	events, _, err := drainOf(t, &fake{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	const running, processes = 8 * pipelined, 8*pipelined + drainers*drainPipelined
	missing := map[string]bool{}
	decided := map[string]bool{}
	for _, e := range events {
		if e.Process%processes < running {
			for _, n := range []string{"n1", "n2", "n3"} {
				missing[fmt.Sprint(n, e.NS, e.Key)] = true
			}
			continue
		}
		if e.Type != history.OK {
			continue
		}
		decided[e.Node+" "+e.F+" "+strings.Split(e.Key, ":")[0]] = true
		if e.F == "peek" || e.F == "takeall" {
			delete(missing, fmt.Sprint(e.Node, e.NS, e.Key))
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d keys were not read through a node: %v", len(missing), missing)
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		for _, c := range limited {
			for _, f := range []string{"take-limit", "peek-limit", "refund-limit", "ttl-limit", "list-limit"} {
				if what := n + " " + f + " " + c.name; !decided[what] {
					t.Errorf("nobody asked %s", what)
				}
			}
			if what := n + " takeall " + c.name; !c.alone && !decided[what] {
				t.Errorf("nobody asked %s", what)
			}
		}
		for _, c := range classes {
			for _, f := range []string{"take", "peek", "exists", "ttl", "list", "type"} {
				if what := n + " " + f + " " + c.name; !decided[what] {
					t.Errorf("nobody asked %s", what)
				}
			}
		}
	}
}

// What does not come back must be named, and in time.
func TestTheEndSaysWhatDoesNotComeBack(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(node string, cmd []string) string
		want   []string
		at     time.Duration
	}{
		"a node refuses": {func(n string, cmd []string) string {
			if n == "n2" && cmd[0] == "CL.THROTTLE" {
				return "-CLUSTERDOWN no leader\r\n"
			}
			return allow(n, cmd)
		}, []string{"n2", "CL.THROTTLE", "CLUSTERDOWN"}, 5 * time.Second},
		"one key is stuck": {func(n string, cmd []string) string {
			if n == "n3" && len(cmd) > 1 && strings.HasPrefix(cmd[1], "cold:0:") && cmd[0] == "CL.THROTTLE" {
				return "-INDOUBT perhaps\r\n"
			}
			return allow(n, cmd)
		}, []string{"n3", "cold:0:", "INDOUBT"}, 5 * time.Second},
		"a node lags": {func(n string, cmd []string) string {
			if n == "n3" && cmd[0] == "RL.HASH" {
				return "*1\r\n*2\r\n:6\r\n$1\r\nx\r\n"
			}
			return allow(n, cmd)
		}, []string{"[7 7 6]"}, 5 * time.Second},
		"states differ": {func(n string, cmd []string) string {
			if n == "n3" && cmd[0] == "RL.HASH" {
				return "*2\r\n*2\r\n:7\r\n$1\r\nb\r\n*2\r\n:9\r\n$1\r\nc\r\n"
			}
			return allow(n, cmd)
		}, []string{"diverged", "index 7", "n3"}, 0},
		"no hash": {func(n string, cmd []string) string {
			if n == "n1" && cmd[0] == "RL.HASH" {
				return "-LOADING the state\r\n"
			}
			return allow(n, cmd)
		}, []string{"n1", "RL.HASH", "LOADING"}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			_, took, err := drainOf(t, &fake{answer: tt.answer}, 5*time.Second)
			if err == nil {
				t.Fatal("no error")
			}
			for _, word := range tt.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			if took < tt.at || took > tt.at+time.Second {
				t.Errorf("told after %v, want %v", took, tt.at)
			}
		})
	}
}

// A healed cluster needs a moment.
func TestTheEndWaitsForWhatComesBack(t *testing.T) {
	var began time.Time
	f := &fake{}
	f.answer = func(n string, cmd []string) string {
		if n == "n2" && time.Since(began) < 9*time.Second {
			return "-CLUSTERDOWN no leader\r\n"
		}
		if cmd[0] == "RL.HASH" {
			newest := min(7, 1+int(time.Since(began)/(2*time.Second)))
			if n == "n1" {
				newest = 7
			}
			return fmt.Sprintf("*1\r\n*2\r\n:%d\r\n$1\r\na\r\n", newest)
		}
		return allow(n, cmd)
	}
	synctest.Test(t, func(t *testing.T) {
		w, end := f.start(t, Config{Workers: 1})
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := w.Drain(ctx); err != nil || time.Since(began) < 12*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		fails := 0
		for _, e := range end() {
			if e.Type == history.Fail && e.Node == "n2" {
				fails++
			}
		}
		if fails == 0 {
			t.Error("what failed is not in the history")
		}
	})
}

// A process that is in doubt stays dead, over all drains of a run.
func TestADrainMayComeAgain(t *testing.T) {
	f := &fake{}
	doubts := 3
	f.answer = func(n string, cmd []string) string {
		if doubts--; doubts > 0 {
			return "-INDOUBT perhaps\r\n"
		}
		return allow(n, cmd)
	}
	w, end := f.start(t, Config{Nodes: func() []string { return []string{"n1"} }})
	for range 2 {
		doubts = 3
		if err := w.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	end()
}

func TestADrainOfTooManyNodes(t *testing.T) {
	for _, n := range []int{0, drainers + 1} {
		w, end := (&fake{}).start(t, Config{Nodes: func() []string { return make([]string, n) }})
		if err := w.Drain(t.Context()); err == nil || errors.Is(err, errDiverged) {
			t.Errorf("%d nodes: %v", n, err)
		}
		end()
	}
}
