package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
)

func TestEachNemesisHasANameAReasonAndAPart(t *testing.T) {
	names := map[string]bool{}
	for _, n := range All {
		if n.Name == "" || n.Why == "" || n.Takes == 0 || n.Run == nil || names[n.Name] {
			t.Errorf("%+v", n)
		}
		names[n.Name] = true
	}
}

// A fault that is forgotten goes on in all that follows; an event without its end makes
// the report wrong.
func TestEachNemesisEndsWhatItBegins(t *testing.T) {
	for _, n := range All {
		for _, size := range []int{3, 5} {
			for seed := range uint64(3) {
				inBubble(t, fmt.Sprintf("%s of %d, seed %d", n.Name, size, seed), func(t *testing.T, ctx context.Context) {
					base, l := newEnv(t, size, 2)
					e := base.As(n.Name, rand.New(rand.NewPCG(seed, 1)))
					if err := n.Run(ctx, e); err != nil {
						t.Fatal(err)
					}
					if len(l.cuts) > 0 && len(l.cuts[len(l.cuts)-1]) > 0 || len(l.shapes) > 0 && len(l.shapes[len(l.shapes)-1]) > 0 {
						t.Errorf("still cut: %v, %v", l.cuts, l.shapes)
					}
					for _, f := range l.nodes {
						if f.paused || f.slow || f.full || f.stalled || f.injected || f.older || f.drift != 1 {
							t.Errorf("still at it: %+v", f)
						}
					}
					if err := e.Operate(); err != nil {
						t.Error(err)
					}
					if got := e.Roster.List(); len(got) < 3 || e.Roster.voters() != len(got) || len(l.members) != len(got) {
						t.Errorf("members %v, of which %d vote; the cluster has %v", got, e.Roster.voters(), l.members)
					}
					if says := e.Complaints(); says != nil {
						t.Errorf("complaints about a cluster that does what it should: %q", says)
					}
					checkEvents(t, e, l.dir, n.Name)
				})
			}
		}
	}
}

// checkEvents: each start of a fault has its stop.
func checkEvents(t *testing.T, e *Env, dir, name string) {
	t.Helper()
	open, began := map[string]int{}, 0
	for _, x := range events(t, e, dir) {
		if x.F != name || len(x.Targets) == 0 {
			t.Errorf("event %+v", x)
		}
		switch x.Phase {
		case "start":
			open[fmt.Sprint(x.Targets)]++
			began++
		case "stop":
			open[fmt.Sprint(x.Targets)]--
		}
	}
	for targets, n := range open {
		if n != 0 {
			t.Errorf("%s: %d more starts than stops", targets, n)
		}
	}
	if began == 0 {
		t.Error("the history does not know that anything was done")
	}
}

func events(t *testing.T, e *Env, dir string) (all []history.Event) {
	t.Helper()
	if err := e.Recorder.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := history.ReadEvents(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheSameSeedDrawsTheSameFaultsAndNoTwoOfAPart(t *testing.T) {
	a, b := rand.New(rand.NewPCG(7, 1)), rand.New(rand.NewPCG(7, 1))
	sizes := map[int]int{}
	for range 300 {
		x, y := Draw(a, All), Draw(b, All)
		var taken Part
		for i, n := range x {
			if n.Name != y[i].Name {
				t.Fatalf("%s and %s", n.Name, y[i].Name)
			}
			if taken&n.Takes != 0 {
				t.Fatalf("two that need the same part, at once: %v", x)
			}
			taken |= n.Takes
		}
		sizes[len(x)]++
	}
	if sizes[0] > 0 || sizes[1] == 0 || sizes[2] == 0 || sizes[3] == 0 || len(sizes) != 3 {
		t.Errorf("how many at once: %v", sizes)
	}
}

func TestFindNamesWhatIsUnknown(t *testing.T) {
	if found, err := Find("pause,kill-one"); len(found) != 2 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := Find("pause,nonsense"); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("%v", err)
	}
	if found, err := Find("none"); len(found) != 0 || err != nil {
		t.Errorf("none are %v, %v", found, err)
	}
}

// reach says which members hear each other, both ways.
func reach(ids []string, cuts []lab.Cut) map[string][]string {
	all := map[string][]string{}
	for _, a := range ids {
		for _, b := range ids {
			if !slices.ContainsFunc(cuts, func(c lab.Cut) bool { return c.From == a && c.To == b || c.From == b && c.To == a }) {
				all[a] = append(all[a], b)
			}
		}
	}
	return all
}

func TestARingLeavesEachAMajorityAndNoTwoTheSame(t *testing.T) {
	for _, size := range []int{4, 5, 6, 7} {
		ids := []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"}[:size]
		seen := map[string]bool{}
		for id, others := range reach(ids, ring(ids)) {
			if len(others) <= size/2 || len(others) == size {
				t.Errorf("of %d nodes %s hears %v", size, id, others)
			}
			seen[strings.Join(others, " ")] = true
		}
		if len(seen) != size {
			t.Errorf("of %d nodes: %d different majorities", size, len(seen))
		}
	}
}

func TestABridgeIsOneNodeThatHearsAll(t *testing.T) {
	for _, size := range []int{3, 5} {
		inBubble(t, fmt.Sprint(size), func(t *testing.T, ctx context.Context) {
			e, l := newEnv(t, size, 0)
			found, _ := Find("bridge")
			if err := found[0].Run(ctx, e); err != nil {
				t.Fatal(err)
			}
			all := 0
			for _, others := range reach(e.Roster.List(), l.cuts[0]) {
				if len(others) == size {
					all++
				}
			}
			if all != 1 {
				t.Errorf("%d nodes hear all: %v", all, l.cuts[0])
			}
		})
	}
}

func TestLeadersAreHitMost(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, _ := newEnv(t, 5, 0)
		hits := 0
		for range 1000 {
			if e.victim() == "n1" {
				hits++
			}
		}
		if hits < 620 || hits > 740 { // 0.6 + 0.4/5
			t.Errorf("the leader is the victim %d times of 1000", hits)
		}
	})
}

func TestHostileBytesComeFromTheSeed(t *testing.T) {
	a, b := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	for range 200 {
		for _, corpus := range [][]string{commands, frames} {
			if x, y := draw(a, corpus), draw(b, corpus); string(x) != string(y) || len(x) == 0 {
				t.Fatalf("%q and %q", x, y)
			}
		}
	}
}
