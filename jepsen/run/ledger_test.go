package run

import (
	"reflect"
	"strings"
	"testing"

	"limitd/jepsen/history"
)

func TestPausesAreThoseThatTouchTheFault(t *testing.T) {
	admit := func(at int64) history.Event {
		return history.Event{Type: history.OK, F: "take", Time: at, Reply: []any{int64(0), int64(1), int64(0), int64(-1), int64(1)}}
	}
	fault := func(at int64, phase string) history.Event {
		return history.Event{Type: history.Info, Process: history.Nemesis, F: "kill", Phase: phase, Time: at}
	}
	denied := history.Event{Type: history.OK, F: "take", Time: 65, Reply: []any{int64(1), int64(1), int64(0), int64(1), int64(1)}}
	got := pauses([]history.Event{
		admit(0), admit(40), // a long pause before it
		fault(50, "start"), denied, fault(70, "stop"),
		admit(75), admit(200), // and one after
		fault(210, "start"), fault(220, "stop"), admit(230), admit(240),
	})
	if want := map[string][]int64{"kill": {35, 30}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestASummaryAddsUp(t *testing.T) {
	dir := t.TempDir()
	for _, e := range []history.SoakRun{
		{Seed: 1, Verdict: "valid", Duration: 1800e9, Operations: 10, LeaderChanges: 2, Faults: map[string]int64{"kill": 2}, NoService: map[string][]int64{"kill": {1e9, 3e9}}},
		{Seed: 2, Verdict: "invalid", Duration: 1800e9, Operations: 5, Faults: map[string]int64{"kill": 1, "pause": 1}, NoService: map[string][]int64{"kill": {2e9}}},
	} {
		if err := Append(dir, e); err != nil {
			t.Fatal(err)
		}
	}
	all, err := history.ReadLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := Summary(all)
	for _, want := range []string{"2 runs, 1.0 hours, 15 operations, 2 leader changes; 1 invalid 1 valid", "| kill | 3 | 2.00 s | 3.00 s |", "| pause | 1 | | |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
