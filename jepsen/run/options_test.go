package run

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"limitd/jepsen/lab"
)

func TestEachProfileIsValid(t *testing.T) {
	for _, name := range append(Profiles(), CI...) {
		o, err := Profile(name)
		if err == nil {
			err = o.Validate()
		}
		if err != nil || o.Profile != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Profile("nonsense"); err == nil || !strings.Contains(err.Error(), "soak") {
		t.Errorf("%v", err)
	}
}

func TestAllThatIsWrongIsSaid(t *testing.T) {
	err := Options{Nemeses: "nonsense", Nodes: 2, Store: "rocks"}.Validate()
	for _, want := range []string{"-nemesis", "-time", "-nodes", "-log-store", "-workers", "-rate"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}

// What a replay would leave out would make another run.
func TestOptionsSurviveTheirFile(t *testing.T) {
	o := Options{Seed: 1 << 63, Profile: "p", Nemeses: "pause", Time: time.Second, Nodes: 5, Workers: 7, Rate: 12.5, Slow: true, Proxy: true,
		Store: "wal", Tags: "mutant", Binary: "b", From: "c0ffee", Previous: "p", Env: map[string]string{"A": "b"}}
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var got Options
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("%v: %+v, want %+v", err, got, o)
	}
	for _, want := range []string{"-seed 9223372036854775808", "-profile p", "-nemesis pause", "-time 1s", "-nodes 5", "-workers 7", "-rate 12.5", "-slow", "-proxy", "-log-store wal", "-tags mutant", "-from c0ffee", "-env A=b"} {
		if !strings.Contains(o.replay()+" ", " "+want+" ") {
			t.Errorf("no %q in %s", want, o.replay())
		}
	}
}

func TestWhatCannotBeDoneIsNamedWithTheReason(t *testing.T) {
	able := func(a lab.Ability) error {
		if a == lab.PowerCut {
			return fmt.Errorf("%w: no root", lab.ErrUnable)
		}
		return nil
	}
	can, cannot, skipped, err := Options{Nemeses: "pause,power-one,power-all"}.nemeses(able)
	if err != nil || len(can) != 1 || len(cannot) != 2 || len(skipped) != 1 || skipped[0] != "power-one, power-all: this machine cannot do it: no root" {
		t.Errorf("%d can, %d cannot, skipped %q, %v", len(can), len(cannot), skipped, err)
	}
}

func TestSlowLinksAreWantedOnlyWhereTheyAreAskedFor(t *testing.T) {
	for _, slow := range []bool{false, true} {
		can, _, skipped, err := Options{Nemeses: "all", Slow: slow}.nemeses(func(lab.Ability) error { return nil })
		found := false
		for _, n := range can {
			found = found || n.Name == "slow-links"
		}
		if err != nil || found != slow || skipped != nil {
			t.Errorf("slow %v: %v, skipped %q, %v", slow, found, skipped, err)
		}
	}
}
