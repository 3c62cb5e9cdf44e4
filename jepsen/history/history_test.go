package history

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestRepliesStayExact(t *testing.T) {
	dir := t.TempDir()
	r, err := NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := r.Event(Event{Type: OK, Process: 3, F: "take", Tag: math.MaxUint64, Node: "n1", Key: "k", Reply: []any{int64(math.MaxInt64), "x", int64(-1)}})
	r.Event(Event{Type: Invoke, F: "take", Cmd: []string{"A", "b c"}})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadEvents(dir)
	if err != nil || len(got) != 2 || !reflect.DeepEqual(got[0], want) || got[1].Index != 1 {
		t.Fatalf("%+v, %v; want %+v first", got, err, want)
	}
}

func TestALineThatIsNoEventIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, bad := range []string{"x", `{"index":1,"reply":[1,[9223372036854775808]]}`, `{"index":1,"reply":0.5}`, `{"index":1`} {
		if err := os.WriteFile(filepath.Join(dir, EventsFile), []byte("{}\n"+bad+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadEvents(dir); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestALossOfLinesIsTold(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{EventsFile, HealthFile, SamplesFile} {
		if err := os.Symlink("/dev/full", filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Event(Event{Type: Invoke})
	if err := r.Close(); err == nil {
		t.Error("no error")
	}
	if _, err := NewRecorder(filepath.Join(dir, "none")); err == nil {
		t.Error("no error for a directory that is none")
	}
}

// A key that is no counter would be a false alarm of Jepsen's checker.
func TestOnlyCountersAreCounters(t *testing.T) {
	add := func(key string, period, quantity string) Event {
		return Event{Type: Invoke, Key: key, Cmd: []string{"CL.THROTTLE", key, "9", "1", period, quantity}}
	}
	for name, more := range map[string][]Event{
		"refunded":       {add("k", "86400", "-1")},
		"reset":          {{Type: Invoke, Key: "other", Cmd: []string{"DEL", "other", "k"}}},
		"flushed":        {{Type: Invoke, Cmd: []string{"FLUSHDB"}}},
		"all flushed":    {{Type: Invoke, NS: 4, Cmd: []string{"FLUSHALL"}}},
		"another limit":  {add("k", "86399", "1")},
		"refilled":       {{Type: Invoke, Time: 43200e9 + 1, Key: "k", Cmd: []string{"TTL", "k"}}},
		"of who knows":   {{Type: Invoke, Key: "k", Cmd: []string{"INCR", "k"}}},
		"overflows here": {add("k", "9223372036854775807", "1")},
	} {
		if _, order := findCounters(append([]Event{add("k", "86400", "1")}, more...)); len(order) != 0 {
			t.Errorf("%s: a counter", name)
		}
	}
	_, order := findCounters([]Event{add("a", "3599", "1"), add("k", "86400", "1"), {Type: Invoke, NS: 1, Cmd: []string{"FLUSHDB"}}, add("k", "86400", "0")})
	if want := []place{{0, "k"}}; !reflect.DeepEqual(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// An entry that a power cut took with it is not what a node has at the end.
func TestTheSetIsReadFromTheLastStateAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "trace"), 0o700); err != nil {
		t.Fatal(err)
	}
	start := `{"kind":"start","node":"n1","boot":1}` + "\n"
	round := func(digest, call string) string {
		return `{"kind":"round","node":"n1","boot":1,"digest":"` + digest + `","calls":[{` + call + `,"op":"take"}]}` + "\n"
	}
	applied := func(digest, outcome, chain string) string {
		return `{"kind":"applied","node":"n1","boot":1,"digest":"` + digest + `","outcome":"` + outcome + `","chain":"` + chain + `"}` + "\n"
	}
	text := start + round("d1", `"tag":1,"cost":1,"allowed":true`) + round("d2", `"tag":2,"cost":1,"allowed":true`) + round("d3", `"tag":3,"cost":1,"allowed":true`) +
		round("d1", `"tag":4,"cost":1`) + round("d1", `"tag":5,"allowed":true`) +
		applied("d1", "applied", "c1") + applied("d2", "applied", "c2") +
		start + applied("d1", "applied", "c1") + applied("d2", "void", "c1") + applied("d3", "applied", "c3")
	if err := os.WriteFile(TraceFile(dir, "n1"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := readAudit(dir, []string{"n1"})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := a.tags("n1"); !ok || !reflect.DeepEqual(got, []uint64{1, 3}) {
		t.Errorf("%v, want 1 and 3", got)
	}
	if _, err := readAudit(dir, []string{"n1", "n2"}); err == nil || !strings.Contains(err.Error(), "n2") {
		t.Errorf("a member without a trace: %v", err)
	}
}

func TestTheOrderOfLinesIsTheOrderOfTimes(t *testing.T) {
	dir := t.TempDir()
	r, err := NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				r.Event(Event{Type: Invoke})
			}
		})
	}
	all.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadEvents(dir)
	if err != nil || len(got) != 1600 {
		t.Fatal(len(got), err)
	}
	for i, e := range got {
		if e.Index != i || i > 0 && e.Time < got[i-1].Time {
			t.Fatalf("line %d has index %d and time %d after %d", i, e.Index, e.Time, got[i-1].Time)
		}
	}
}

func TestEDNIsJepsens(t *testing.T) {
	for want, e := range map[string]Event{
		`{:type :invoke, :f :take, :process 3, :time 7, :index 1, :value {:node "n1" :key "a\"b" :tag 9 :cmd ["CL.THROTTLE" "a\"b\n"]}}`: {
			Type: Invoke, F: "take", Process: 3, Time: 7, Index: 1, Node: "n1", Key: `a"b`, Tag: 9, Cmd: []string{"CL.THROTTLE", "a\"b\n"}},
		`{:type :ok, :f :take, :process 3, :time 8, :index 2, :value {:tag 9 :reply [0 16 -1 "x"]}}`: {
			Type: OK, F: "take", Process: 3, Time: 8, Index: 2, Tag: 9, Reply: []any{int64(0), int64(16), int64(-1), "x"}},
		`{:type :info, :f :kill, :process :nemesis, :time 9, :index 3, :value {:phase "start" :targets ["n1" "n2"]}}`: {
			Type: Info, F: "kill", Process: Nemesis, Time: 9, Index: 3, Phase: "start", Targets: []string{"n1", "n2"}},
		`{:type :fail, :f :take, :process 0, :time 1, :index 4, :value {}, :error "BUSY \u0001 日𝄞"}`: {
			Type: Fail, F: "take", Time: 1, Index: 4, Error: "BUSY \x01 日𝄞"},
		`{:type :ok, :f :take, :process 0, :time 1, :index 5, :value {:ns 3 :tag 18446744073709551615 :reply [[1 nil] "OK"]}}`: {
			Type: OK, F: "take", Time: 1, Index: 5, NS: 3, Tag: math.MaxUint64, Reply: []any{[]any{int64(1), nil}, "OK"}},
	} {
		if got := e.EDN(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
