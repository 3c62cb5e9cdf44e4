package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"limitd/jepsen/history"
)

// upgraded runs a nemesis on three nodes, and returns what it did to them in order.
func upgraded(t *testing.T, ctx context.Context, name string, seed uint64, before func(*fakeLab)) (*Env, *fakeLab, []history.Event) {
	t.Helper()
	base, l := newEnv(t, 3, 0)
	before(l)
	found, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	e := base.As(name, rand.New(rand.NewPCG(seed, 1)))
	if err := found[0].Run(ctx, e); err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(events(t, e, l.dir), func(x history.Event) bool { return x.Phase != "start" })
	return e, l, all
}

func asFounded(l *fakeLab) {
	for _, n := range l.nodes {
		n.older = true
	}
}

func TestAnUpgradeTakesEachNodeOnceInAnOrderOfTheSeed(t *testing.T) {
	orders, kills := map[string]bool{}, 0
	for seed := range uint64(20) {
		inBubble(t, fmt.Sprint(seed), func(t *testing.T, ctx context.Context) {
			_, l, all := upgraded(t, ctx, "upgrade", seed, asFounded)
			order := ""
			for _, x := range all {
				order += x.Targets[0]
				if strings.HasPrefix(x.Detail, "SIGKILL") {
					kills++
				}
			}
			orders[order] = true
			if want := []string{"RL.CLUSTER TRANSFER " + all[0].Targets[0]}; !slices.Equal(l.asked, want) {
				t.Errorf("asked for %q, not for %q: nobody newer leads the mixed cluster", l.asked, want)
			}
			if len(all) != 3 || l.older() > 0 || !slices.Equal(l.olders, []int{3, 2, 1}) {
				t.Errorf("%+v, %d are older still; before each start %v", all, l.older(), l.olders)
			}
		})
	}
	if len(orders) != 6 || kills < 5 || kills > 30 {
		t.Errorf("20 seeds: %d orders, %d of 60 killed", len(orders), kills)
	}
}

// A node that goes back when all are on the newer binary finds no way.
func TestADowngradeIsMadeWhileAnotherNodeIsOlderStill(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, fmt.Sprint(seed), func(t *testing.T, ctx context.Context) {
			_, l, all := upgraded(t, ctx, "downgrade", seed, asFounded)
			back := slices.IndexFunc(all, func(x history.Event) bool { return strings.Contains(x.Detail, "back to the older") })
			if len(all) != 5 || back != 2 || l.olders[back] != 1 || len(l.asked) != 1 || all[4].Targets[0] != all[back].Targets[0] || l.older() > 0 {
				t.Errorf("%+v; older before each start %v", all, l.olders)
			}
		})
	}
}

func TestAClusterOnTheNewerBinaryIsRolledBackFirst(t *testing.T) {
	inBubble(t, "", func(t *testing.T, ctx context.Context) {
		if _, l, _ := upgraded(t, ctx, "upgrade", 1, func(*fakeLab) {}); !slices.Equal(l.olders, []int{0, 1, 2, 3, 2, 1}) || l.older() > 0 {
			t.Errorf("older before each start: %v", l.olders)
		}
	})
}

// It says so, which is what it is to do, and has the newer one again.
func TestWhereThereIsNoWayBackOneNodeTries(t *testing.T) {
	inBubble(t, "", func(t *testing.T, ctx context.Context) {
		e, l, all := upgraded(t, ctx, "upgrade", 1, func(l *fakeLab) {
			for _, n := range l.nodes {
				n.refuses = "limitd: this node has stopped itself: unknown entry version 2, this limitd reads versions up to 1"
			}
		})
		if len(all) != 1 || l.older() > 0 || len(l.olders) != 2 || e.Complaints() != nil {
			t.Errorf("%+v, starts %v, complaints %q", all, l.olders, e.Complaints())
		}
	})
}

func TestANodeThatEndsBetweenTwoBinariesIsReported(t *testing.T) {
	refusal := "this limitd reads versions up to 1"
	for _, c := range []struct {
		name   string
		before func(*fakeLab)
	}{
		{"the older one goes back for no reason", func(l *fakeLab) { l.node("n2").refuses = "no" }},
		{"the older one was given what it does not read before all were newer", func(l *fakeLab) {
			asFounded(l)
			l.node("n2").running, l.node("n2").says = false, refusal
		}},
	} {
		inBubble(t, c.name, func(t *testing.T, ctx context.Context) {
			e, l, _ := upgraded(t, ctx, "upgrade", 1, c.before)
			if says := e.Complaints(); len(says) != 1 || !strings.Contains(says[0], "n2 has ended by itself") || l.older() > 0 {
				t.Errorf("complaints %q, %d older", says, l.older())
			}
		})
	}
}

func TestARunThatIsAskedForUpgradesBeginsWithOneAndOthersDoAtTimes(t *testing.T) {
	without := slices.DeleteFunc(slices.Clone(All), func(n Nemesis) bool { return strings.HasSuffix(n.Name, "grade") })
	r := rand.New(rand.NewPCG(1, 1))
	begun, unasked, none := map[string]int{}, 0, 0
	for range 400 {
		if n, ok := Upgrade(r, All, true); ok {
			begun[n.Name]++
		}
		if _, ok := Upgrade(r, All, false); ok {
			unasked++
		}
		if _, ok := Upgrade(r, without, true); ok {
			none++
		}
	}
	if begun["upgrade"] < 150 || begun["downgrade"] != 400-begun["upgrade"] || unasked < 70 || unasked > 130 || none > 0 {
		t.Errorf("of 400 runs: asked for %v, not %d, without such nemeses %d", begun, unasked, none)
	}
}
