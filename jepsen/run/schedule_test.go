package run

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"limitd/jepsen/nemesis"
)

// names is a plan without its functions.
func names(p plan) (all []string) {
	for _, n := range p.faults {
		all = append(all, n.Name)
	}
	return all
}

func TestTheScheduleIsAFunctionOfTheSeed(t *testing.T) {
	a, b := rand.New(rand.NewPCG(3, scheduleStream)), rand.New(rand.NewPCG(3, scheduleStream))
	other := rand.New(rand.NewPCG(4, scheduleStream))
	same := 0
	for range 100 {
		x, y, z := draw(a, nemesis.All), draw(b, nemesis.All), draw(other, nemesis.All)
		if !slices.Equal(names(x), names(y)) || !reflect.DeepEqual(x.after, y.after) || x.calm != y.calm {
			t.Fatalf("%v and %v", x, y)
		}
		if slices.Equal(names(x), names(z)) {
			same++
		}
		if len(x.after) != len(x.faults) || x.after[0] != 0 {
			t.Errorf("%d faults begin after %v", len(x.faults), x.after)
		}
	}
	if same > 20 {
		t.Errorf("two seeds agree in %d of 100 periods", same)
	}
}

// An upgrade that a run was founded for is not left out, and nothing hinders it that would
// restart the same nodes.
func TestTheFirstPeriodHasWhatTheRunWasFoundedFor(t *testing.T) {
	found, err := nemesis.Find("upgrade")
	if err != nil {
		t.Fatal(err)
	}
	r, others := rand.New(rand.NewPCG(1, scheduleStream)), 0
	for range 300 {
		p := draw(r, nemesis.All)
		p.begin(found[0])
		for _, n := range p.faults[1:] {
			if others++; n.Takes&nemesis.Nodes != 0 {
				t.Errorf("%s at the same time", n.Name)
			}
		}
		if p.faults[0].Name != "upgrade" || p.after[0] != 0 || len(p.faults) > faultsMost || len(p.after) != len(p.faults) {
			t.Errorf("%v after %v", names(p), p.after)
		}
	}
	if others < 100 {
		t.Errorf("%d others in 300 periods", others)
	}
}

// Without a long calm now and then nothing would show that a cluster comes to rest.
func TestSomePausesAreLong(t *testing.T) {
	r := rand.New(rand.NewPCG(1, scheduleStream))
	long := 0
	for range 400 {
		if p := draw(r, nemesis.All); p.calm == longCalm {
			long++
		} else if p.calm >= calmMost {
			t.Errorf("a calm of %v", p.calm)
		}
	}
	if long < 70 || long > 130 {
		t.Errorf("%d of 400 are long", long)
	}
}

func TestOneLateTimerMakesTheMachineLateForAMoment(t *testing.T) {
	var m machine
	m.note(timerLate/2, timerLate)
	if !m.keepsUp() || m.behind() != 0 {
		t.Error("late, though nothing was")
	}
	m.note(time.Second, timerLate)
	if m.keepsUp() || m.behind() != time.Second {
		t.Errorf("it keeps up, %v behind", m.behind())
	}
	m.until = time.Now().Add(-time.Millisecond)
	if !m.keepsUp() {
		t.Error("late for ever")
	}
	m.syncing = time.Now().Add(-time.Second)
	if m.keepsUp() {
		t.Error("a sync that does not end is none that is late")
	}
}
