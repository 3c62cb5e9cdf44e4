package main

import (
	"testing"
	"time"
)

func TestFlagsChangeWhatTheProfileSays(t *testing.T) {
	for _, args := range [][]string{
		{"-profile", "soak", "-time", "5s", "-env", "A=b"},
		{"-time=5s", "--profile=soak", "-env=A=b"},
	} {
		o, err := runOptions(args)
		if err != nil || o.Profile != "soak" || o.Workers != 24 || o.Time != 5*time.Second || o.Env["A"] != "b" {
			t.Errorf("%q: %+v, %v", args, o, err)
		}
	}
	if o, err := runOptions([]string{"-nemesis", "upgrade", "-from", "c0ffee", "-previous", "b"}); err != nil || o.From != "c0ffee" || o.Previous != "b" || !o.WantsOlder() {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := runOptions(nil); err != nil || o.Profile != "run" || o.Seed != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWrongFlagsAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-profile", "nonsense"}, {"-nemesis", "nonsense"}, {"-env", "A"}, {"-nodes", "2"}, {"further"}} {
		if _, err := runOptions(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
