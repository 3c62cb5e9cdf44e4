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
	if err := os.WriteFile(filepath.Join(dir, EventsFile), []byte("{}\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEvents(dir); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line that is no event: %v", err)
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
		`{:type :fail, :f :take, :process 0, :time 1, :index 4, :value {}, :error "BUSY \u0001"}`: {
			Type: Fail, F: "take", Time: 1, Index: 4, Error: "BUSY \x01"},
	} {
		if got := e.EDN(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
