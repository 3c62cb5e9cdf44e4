package history

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The format that written runs have.
func TestGoldenRun(t *testing.T) {
	const dir = "testdata/v1"
	var run Run
	if err := ReadJSON(dir, RunFile, &run); err != nil {
		t.Fatal(err)
	}
	if want := (Run{
		Seed: math.MaxUint64, Profile: "ci", Nemeses: []string{"kill"}, Commit: "c0ffee1", Previous: "c0ffee0", Mode: "netns", Skipped: []string{"slow-disk: strace is not installed"},
		Nodes: []string{"n1", "n2", "n3"}, Members: []string{"n1", "n2"}, HeartbeatNS: 3e8, Started: "2026-01-02T03:04:05Z", Duration: 9000,
		Settings: "[raft]\nheartbeat = \"300ms\"\n", Replay: "go run ./jepsen/cmd/jepsen run -seed 18446744073709551615 -nemesis kill",
		Unsettled: []string{"n3: no answer"}, Gates: map[string]int64{"operations": 4}, Tools: map[string]string{"strace": "6.1"},
	}); !reflect.DeepEqual(run, want) {
		t.Errorf("%+v\nwant %+v", run, want)
	}
	events, err := ReadEvents(dir)
	if err != nil || len(events) != 14 {
		t.Fatal(len(events), err)
	}
	for i, want := range map[int]Event{
		0:  {Index: 0, Type: Invoke, Time: 1000, F: "take", Tag: 1, Node: "n1", Key: "budget:0:0", Cmd: []string{"CL.THROTTLE", "budget:0:0", "399", "1", "86400", "300"}},
		1:  {Index: 1, Type: OK, Time: 1500, F: "take", Tag: 1, Node: "n1", Key: "budget:0:0", Reply: []any{int64(0), int64(400), int64(100), int64(-1), int64(25920000)}},
		4:  {Index: 4, Type: Info, Process: Nemesis, Time: 3000, F: "kill", Phase: "start", Targets: []string{"n1"}, Detail: "the leader"},
		8:  {Index: 8, Type: Fail, Time: 4100, F: "take", Tag: 4, Node: "n1", NS: 3, Key: `k "1"`, Error: "CLUSTERDOWN no leader"},
		13: {Index: 13, Type: OK, Process: 3, Time: 6600, F: "reset", Tag: 6, Node: "n3", Key: "cold:1:1", Reply: int64(1)},
	} {
		if !reflect.DeepEqual(events[i], want) {
			t.Errorf("%+v\nwant %+v", events[i], want)
		}
	}
	health, err := ReadHealth(dir)
	if want := []Health{{900, map[string]NodeHealth{"n1": {true, true, true, true, []string{"n2"}}, "n2": {Voter: true}}}}; err != nil || !reflect.DeepEqual(health, want) {
		t.Errorf("%+v, %v, want %+v", health, err, want)
	}
	samples, err := ReadSamples(dir)
	if want := []Sample{{950, "n1", "leader", 2, 1767322800000000000}}; err != nil || !reflect.DeepEqual(samples, want) {
		t.Errorf("%+v, %v, want %+v", samples, err, want)
	}
}

// The rows of calls under limit expressions, and of lists.
func TestGoldenLimits(t *testing.T) {
	events, err := ReadEvents("testdata/v1-limits")
	if err != nil || len(events) != 20 {
		t.Fatal(len(events), err)
	}
	for i, want := range map[int]Event{
		3:  {Index: 3, Type: OK, Process: 1, Time: 2500, F: "takeall", Tag: 2, Node: "n2", Key: "date:0:0", Reply: []any{int64(0), int64(1), int64(-1), int64(1861919993001), []any{int64(20), int64(18), int64(0), int64(6999), int64(0)}, []any{int64(1), int64(1), int64(-1), int64(0), int64(0)}}},
		6:  {Index: 6, Type: Invoke, Process: 3, Time: 3000, F: "repeat", Tag: 4, Node: "n1", Key: "log:0:0", Cmd: []string{"RL.TAKE", "log:0:0", "log:1/1500ms", "COST", "1", "ID", "1-2"}},
		9:  {Index: 9, Type: OK, Time: 4100, F: "list-limit", Tag: 5, Node: "n1", Key: "date:0:0", Reply: []any{[]any{"fixed", "day,tz=Asia/Dhaka,hour=6", int64(2), int64(6997)}}},
		11: {Index: 11, Type: OK, Time: 4300, F: "list-limit", Tag: 6, Node: "n1", Key: "queue:0:0", Reply: []any{}},
		15: {Index: 15, Type: OK, Time: 5300, F: "list", Tag: 8, Node: "n1", Key: "budget:0:0", Reply: []any{[]any{"throttle", "", int64(604799999999000), int64(604800000)}}},
	} {
		if !reflect.DeepEqual(events[i], want) {
			t.Errorf("%+v\nwant %+v", events[i], want)
		}
	}
}

// What Jepsen's tools are given of it.
func TestGoldenEDN(t *testing.T) {
	for _, golden := range []string{"testdata/v1", "testdata/v1-limits"} {
		t.Run(golden, func(t *testing.T) { goldenEDN(t, golden) })
	}
}

func goldenEDN(t *testing.T, golden string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	files := []string{EDNFile, SetFile, filepath.Join(CounterDir, "0-budget%3A0%3A0.edn")}
	for _, f := range files {
		if err := os.Remove(filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteEDN(dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(golden, f))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is\n%swant\n%s", f, got, want)
		}
	}
	if more, err := os.ReadDir(filepath.Join(dir, CounterDir)); err != nil || len(more) != 1 {
		t.Errorf("counters: %v, %v; want the one key that is one", more, err)
	}
}
