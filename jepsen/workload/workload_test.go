package workload

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"limitd/jepsen/history"
)

// runFor runs a workload for a while of virtual time, and returns what was recorded.
func runFor(t *testing.T, d time.Duration, f *fake, c Config) (events []history.Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, end := f.start(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		w.Run(ctx)
		events = end()
	})
	return events
}

// asked are the commands of each worker in order, of all that are not patient.
func asked(events []history.Event, workers int) map[int][]string {
	all := map[int][]string{}
	processes := workers*pipelined + drainers*drainPipelined
	for _, e := range events {
		if e.F == repeated.F {
			continue
		}
		if w := e.Process % processes / pipelined; e.Type == history.Invoke && !habits[w%crowd].patient {
			all[w] = append(all[w], strings.Join(e.Cmd, " "))
		}
	}
	return all
}

// A failing seed that asks something else the next time is no seed.
func TestASeedAsksTheSameWhateverIsAnswered(t *testing.T) {
	config := Config{Seed: 42, Workers: 10, Rate: 500}
	quiet := asked(runFor(t, 6*time.Second, &fake{}, config), 10)
	var n atomic.Int64
	moody := &fake{down: map[string]bool{"n3": true}, answer: func(node string, cmd []string) string {
		switch n.Add(1) % 50 {
		case 0:
			return ""
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
			return "-INDOUBT perhaps\r\n"
		}
		return allow(node, cmd)
	}}
	other := asked(runFor(t, 6*time.Second, moody, config), 10)
	if len(quiet) != 7 || len(other) != 7 { // three are patient
		t.Fatalf("%d and %d workers asked, want 7 each", len(quiet), len(other))
	}
	for w := range quiet {
		a, b := quiet[w], other[w]
		if m := min(len(a), len(b)); m < 100 || !slices.Equal(a[:m], b[:m]) {
			t.Errorf("worker %d asks %d times the same, or something else", w, m)
		}
	}
	config.Seed = 43
	if reflect.DeepEqual(quiet, asked(runFor(t, 3*time.Second, &fake{}, config), 10)) {
		t.Error("another seed asks the same")
	}
}

func TestTheRateIsKeptAndNotMadeUpFor(t *testing.T) {
	stalled := make(chan struct{})
	f := &fake{answer: func(node string, cmd []string) string {
		<-stalled
		return allow(node, cmd)
	}}
	synctest.Test(t, func(t *testing.T) {
		stalled = make(chan struct{})
		w, end := f.start(t, Config{Workers: 8, Rate: 400, Patience: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		go func() {
			time.Sleep(20 * time.Second)
			close(stalled)
		}()
		w.Run(ctx)
		events := end()
		during, after := 0, 0
		for _, e := range events {
			if e.Type == history.Invoke && e.Time < 20e9 {
				during++
			} else if e.Type == history.Invoke {
				after++
			}
		}
		if during > 8*pipelined {
			t.Errorf("%d operations to a node that answers none", during)
		}
		// Each worker may make up for one operation, or send one pipeline.
		if most := 4000 + 8*pipelined; after > most || after < 3000 {
			t.Errorf("%d operations in the 10s after a stall, want 3000 to %d", after, most)
		}
	})
}

// More clients than that on one key, and the checker of linearizability does not end.
func TestAKeyHasNoMoreClientsThanACrowd(t *testing.T) {
	f := &fake{}
	f.answer = func(node string, cmd []string) string {
		time.Sleep(300 * time.Millisecond) // a slow node piles up clients
		return allow(node, cmd)
	}
	open, most := map[string]int{}, map[string]int{}
	for _, e := range runFor(t, 20*time.Second, f, Config{Workers: 32, Rate: 2000}) {
		k := fmt.Sprint(e.NS, e.Key)
		if e.Type == history.Invoke {
			open[k]++
			most[k] = max(most[k], open[k])
		} else {
			open[k]--
		}
	}
	busy := 0
	for k, n := range most {
		if n > crowd {
			t.Errorf("%s has %d operations open", k, n)
		}
		if n >= crowd-3 {
			busy++
		}
	}
	if busy == 0 {
		t.Error("no key is hot")
	}
}

func TestWorkersAskWhomTheyShould(t *testing.T) {
	members := memberList("n1", "n2", "n3")
	synctest.Test(t, func(t *testing.T) {
		w, end := (&fake{}).start(t, Config{Workers: 8, Rate: 400, Nodes: members.list})
		w.leads("n2", 7)
		w.leads("n1", 6) // old news
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() {
			time.Sleep(5 * time.Second)
			members.set("n1", "n3")
		}()
		w.Run(ctx)
		nodes := map[int]map[string]bool{}
		for _, e := range end() {
			if e.Type != history.Invoke || e.Time > 5e9 && e.Time < 5.1e9 {
				continue
			}
			k := e.Process % w.processes / pipelined
			if e.Time > 5e9 {
				k += 100
			}
			if nodes[k] == nil {
				nodes[k] = map[string]bool{}
			}
			nodes[k][e.Node] = true
		}
		for k, asked := range nodes {
			h := habits[k%100].habit
			want := 1
			switch {
			case k < 100 && h == follows && !asked["n2"]:
				t.Errorf("worker %d asks %v, and n2 leads", k, asked)
			case k >= 100 && asked["n2"]:
				t.Errorf("worker %d asks n2, which is no member any more", k-100)
			}
			if h == roams {
				want = 3
			}
			if k < 100 && !habits[k].patient && len(asked) != want {
				t.Errorf("worker %d asks %v, want %d of them", k, asked, want)
			}
		}
	})
}

func TestNoMembersNoQuestions(t *testing.T) {
	if events := runFor(t, time.Second, &fake{}, Config{Workers: 8, Rate: 400, Nodes: func() []string { return nil }}); len(events) != 0 {
		t.Errorf("%d events", len(events))
	}
}

func TestAConfigurationNamesAllThatIsMissing(t *testing.T) {
	err := Config{Patience: -1}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"Nodes", "Workers", "Rate", "Patience"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}

func TestTheTablesAddUp(t *testing.T) {
	n := 0
	for _, o := range Operations {
		n += o.Share
	}
	if n != 100 {
		t.Errorf("operations have %d shares of 100", n)
	}
	n = 0
	for _, o := range Limited {
		n += o.Share
	}
	if n != 100 || Limited[0].On != nil {
		t.Errorf("operations with limits have %d shares of 100", n)
	}
	n = 0
	for _, c := range classes {
		n += c.share
	}
	if n != 100 || cold().name != "cold" || cold().keys != 0 {
		t.Errorf("classes have %d shares of 100, and the last one is %s", n, cold().name)
	}
	for _, c := range owned {
		if c.interval()*c.count != 1000*c.period {
			t.Errorf("%s has an interval of no whole milliseconds", c.name)
		}
	}
}
