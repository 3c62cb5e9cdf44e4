package report

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"limitd/jepsen/history"
)

func TestFaultsEndWithTheirStops(t *testing.T) {
	start := func(at int64, f string, targets ...string) history.Event {
		return history.Event{Process: history.Nemesis, Time: at, F: f, Phase: "start", Targets: targets}
	}
	stop := func(at int64, f string, targets ...string) history.Event {
		e := start(at, f, targets...)
		e.Phase = "stop"
		return e
	}
	moment := start(7, "transfer", "n1")
	moment.Phase = ""
	for _, tt := range []struct {
		name   string
		events []history.Event
		want   []string
	}{
		{"one", []history.Event{start(1, "kill", "n1"), stop(2, "kill", "n1")}, []string{"kill 1-2"}},
		{"none", []history.Event{start(1, "kill", "n1")}, []string{"kill 1-9 open"}},
		{"other names", []history.Event{start(1, "kill", "n1"), start(2, "pause", "n1"), stop(3, "kill", "n1"), stop(4, "pause", "n1")}, []string{"kill 1-3", "pause 2-4"}},
		{"other targets", []history.Event{start(1, "kill", "n1"), start(2, "kill", "n2"), stop(3, "kill", "n1"), stop(4, "kill", "n2")}, []string{"kill 1-3", "kill 2-4"}},
		{"another order of the targets", []history.Event{start(1, "kill", "n1", "n2"), stop(3, "kill", "n2", "n1")}, []string{"kill 1-3"}},
		{"several with one stop", []history.Event{start(1, "jump", "n1"), start(2, "jump", "n2"), stop(3, "jump", "n2", "n1")}, []string{"jump 1-3", "jump 2-3"}},
		{"all with one stop", []history.Event{start(1, "cut", "n1"), start(2, "cut", "n2"), stop(3, "cut")}, []string{"cut 1-3", "cut 2-3"}},
		{"targets that it did not name", []history.Event{start(1, "cut", "n1"), start(2, "cut", "n2"), stop(3, "cut", "n3")}, []string{"cut 1-9 open", "cut 2-3"}},
		{"a stop alone", []history.Event{stop(3, "cut", "n1")}, []string{"cut 3-3"}},
		{"a moment", []history.Event{moment}, []string{"transfer 7-7"}},
		{"a client", []history.Event{{Process: 0, Time: 1, F: "take", Type: history.Invoke}}, nil},
	} {
		var got []string
		for _, f := range findFaults(tt.events, 9) {
			s := fmt.Sprintf("%s %d-%d", f.name, f.from, f.to)
			if f.open {
				s += " open"
			}
			got = append(got, s)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The traces have the machine's boot clock; tagged calls say what that is in the run.
func TestRoundsAreOnTheClockOfTheRun(t *testing.T) {
	r := load(golden(t))
	var got []int64
	for _, x := range r.rounds {
		got = append(got, x.time)
	}
	// By tag 1, boot - time is 49 997 to 50 002 ms; by tag 5, 49 992 to 50 004 ms.
	const offset = (49_997e6 + 50_002e6) / 2
	want := []int64{50_102e6 - offset, 52_104e6 - offset}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestQuantilesAreByNearestRank(t *testing.T) {
	list := make([]int64, 100)
	for i := range list {
		list[i] = int64(i + 1)
	}
	for _, tt := range []struct {
		of   []int64
		p    float64
		want int64
	}{{list, .5, 50}, {list, .99, 99}, {list, 1, 100}, {list, 0, 1}, {list[:1], .99, 1}, {list[:3], .5, 2}, {list[:2], .5, 1}} {
		if got := quantile(tt.of, tt.p); got != tt.want {
			t.Errorf("%v of %d values: %d, want %d", tt.p, len(tt.of), got, tt.want)
		}
	}
}

// However long a run is, its page stays small.
func TestBucketsGrowWithTheRun(t *testing.T) {
	for _, tt := range []struct{ run, bucket time.Duration }{
		{25 * time.Second, 100 * time.Millisecond}, {79 * time.Second, 100 * time.Millisecond}, {81 * time.Second, 200 * time.Millisecond},
		{5 * time.Minute, 500 * time.Millisecond}, {10 * time.Minute, time.Second}, {20 * time.Minute, 2 * time.Second}, {5 * time.Hour, 50 * time.Second},
	} {
		r := &run{end: int64(tt.run), ops: []op{{ended: true, begin: history.Event{Time: 0}, end: history.Event{Time: int64(tt.run), Type: history.OK}}}}
		length, all := r.spread()
		if time.Duration(length) != tt.bucket || len(all) > mostBuckets {
			t.Errorf("%v: %d buckets of %v, want %v", tt.run, len(all), time.Duration(length), tt.bucket)
		}
		if all[0].asked != 1 || len(all[len(all)-1].took[answered]) != 1 {
			t.Errorf("%v: an operation at the edge is lost", tt.run)
		}
	}
}

func TestOperationsThatEndedNowhereAreInDoubt(t *testing.T) {
	r := &run{byEvent: map[int]int{}}
	r.join([]history.Event{
		{Index: 0, Type: history.Invoke, Process: 3, Tag: 1}, {Index: 1, Type: history.Fail, Process: 9}, // an end of nothing
		{Index: 2, Type: history.Info, Process: history.Nemesis},
	})
	if len(r.ops) != 1 || r.ops[0].ended || r.ops[0].outcome() != indoubt {
		t.Errorf("%+v", r.ops)
	}
}

func TestScales(t *testing.T) {
	var labels []string
	for _, x := range newLogarithmic(9e4, 1.1e9, 100, 0).decades() {
		labels = append(labels, x.Label)
	}
	if want := []string{"100 µs", "1 ms", "10 ms", "100 ms", "1 s"}; !slices.Equal(labels, want) {
		t.Errorf("%q, want %q", labels, want)
	}
	one := newLogarithmic(5e6, 5e6, 100, 0) // a single value has a decade around it
	if y := one.at(5e6); y <= 0 || y >= 100 || len(one.decades()) < 2 {
		t.Errorf("%v, %v", y, one.decades())
	}
	if y := one.at(0); math.IsInf(y, 0) || math.IsNaN(y) {
		t.Errorf("0 is at %v", y)
	}
	var steps []float64
	for _, span := range []float64{1, 25, 0.3, 700, 0} {
		steps = append(steps, step(span, 5))
	}
	if want := []float64{.2, 5, .1, 200, 1}; !reflect.DeepEqual(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
}

// A counter-example may name operations that lie far apart.
func TestTheMiddleOfALongStretchIsLeftOut(t *testing.T) {
	r := &run{}
	for i := range 500 {
		key := "k"
		if i%2 == 1 {
			key = "other"
		}
		r.ops = append(r.ops, op{begin: history.Event{Index: i, Key: key}})
	}
	x := &counterExample{Key: "k"}
	r.list(x, r.ops[100].begin, map[int]bool{100: true, 400: true})
	if n := len(x.Ops); n != 20+1+20+1+20+1+20 {
		t.Errorf("%d lines", n)
	}
	if x.Ops[20].Events != "100" || !x.Ops[20].Cited || x.Ops[41].Command != "… 109 more …" || x.Ops[62].Events != "400" || !x.Ops[62].Cited {
		t.Errorf("%+v\n%+v\n%+v", x.Ops[20], x.Ops[41], x.Ops[62])
	}
	if x.Before != 30 || x.After != 29 {
		t.Errorf("%d before, %d after", x.Before, x.After)
	}
}

// A node that has applied nothing says that it is the year 1970.
func TestNoTimeIsNotPlotted(t *testing.T) {
	r := &run{end: 3e9, nodes: []string{"n1"}, samples: []history.Sample{{Time: 1e9, Node: "n1", ClusterNS: 1e18}, {Time: 2e9, Node: "n1", ClusterNS: -2e9}}}
	p := r.clockPanel(timeScale(r.end))
	if last := p.YTicks[0].Label; last != "-1 ms" {
		t.Errorf("the axis begins at %s", last)
	}
}

// Logs have wall clocks; a node's first line and the first row of its trace are of one moment.
func TestLogsAreOnTheClockOfTheRun(t *testing.T) {
	dir := golden(t)
	put(t, dir, "run.json", `{"started":"2020-01-01T00:00:00Z"}`) // as if it were wrong
	r := load(dir)
	began, known := r.began()
	if want := time.Date(2026, 1, 2, 3, 4, 5, 9_500_000, time.UTC); !known || !began.Equal(want) {
		t.Errorf("%v, want %v", began, want)
	}
	r.boot = 0
	if began, _ := r.began(); began.Year() != 2020 {
		t.Errorf("without a trace it began at %v", began)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", -1234567: "-1\u202f234\u202f567", -123: "-123"} {
		if got := count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for ns, want := range map[int64]string{0: "0s", 900: "900ns", 1234: "1.23µs", 123_456_789: "123ms", 1_234_567_890: "1.23s", 100_000_000_001: "1m40s"} {
		if got := duration(ns); got != want {
			t.Errorf("%d is %q, want %q", ns, got, want)
		}
	}
}
