package trace

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func rows(t *testing.T, file string) (all []Row) {
	t.Helper()
	if err := Read(file, func(r Row) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRowsComeBackAsTheyWere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n1.jsonl")
	w, err := Create(file, "n1", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	want := Row{
		Kind: Round, Term: 3, Round: 7, Base: 12, At: 1 << 62, Digest: Digest([]byte("entry")),
		Calls: []Call{{Tag: 1<<64 - 1, Op: "take", NS: 3, Key: Key([]byte{0xff, 'a'}), Algorithm: 1, Interval: 1e9, Burst: 5, Cost: -2, Status: "ok", Allowed: true, Retry: -1}},
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { w.Write(want) })
	}
	all.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := rows(t, file)
	if len(got) != 51 || got[0].Kind != Start || got[0].PID != os.Getpid() {
		t.Fatalf("%d rows, the first %+v", len(got), got[0])
	}
	for _, r := range got[1:] {
		if r.Boot == 0 || r.Node != "n1" {
			t.Fatalf("node %q, boot %d", r.Node, r.Boot)
		}
		r.Node, r.Boot = "", 0
		if !reflect.DeepEqual(r, want) {
			t.Fatalf("%+v\nwant %+v", r, want)
		}
	}
}

// A killed process leaves half a line; the next one appends behind it.
func TestOnlyALineThatAKillCutOffIsLeftOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n1.jsonl")
	start, row := `{"kind":"start","node":"n1","boot":1}`+"\n", `{"kind":"applied","node":"n1","boot":2,"index":5}`+"\n"
	for _, tt := range []struct {
		name, text string
		rows       int
		bad        string
	}{
		{"whole", start + row, 2, ""},
		{"cut at the end", start + row + row[:20], 2, ""},
		{"cut before a start", start + row[:20] + start + row, 3, ""},
		{"cut in between", start + row[:20] + row, 0, "line 2"},
		{"not JSON", start + "garbage\n" + row, 0, "line 2"},
		{"JSON but no row", start + "{}\n", 0, "line 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			n := 0
			err := Read(file, func(Row) error { n++; return nil })
			if tt.bad == "" && (err != nil || n != tt.rows) {
				t.Errorf("%d rows, %v; want %d", n, err, tt.rows)
			}
			if tt.bad != "" && (err == nil || !strings.Contains(err.Error(), tt.bad) || !strings.Contains(err.Error(), file)) {
				t.Errorf("%v, want an error that names %s and %s", err, file, tt.bad)
			}
		})
	}
}

func TestABrokenTraceSaysSoOnce(t *testing.T) {
	var told []error
	w, err := Create("/dev/full", "n1", func(err error) { told = append(told, err) })
	if err != nil {
		t.Fatal(err)
	}
	w.Write(Row{Kind: Applied})
	if len(told) != 1 || !strings.Contains(told[0].Error(), "/dev/full") {
		t.Errorf("told %v", told)
	}
}

func TestKeysAreLossless(t *testing.T) {
	for _, key := range []string{"", "user:42", "日本", "\xff\x00", "base64:x", "a\n\"\\"} {
		b, err := KeyBytes(Key([]byte(key)))
		if err != nil || string(b) != key {
			t.Errorf("%q became %q (%v)", key, b, err)
		}
	}
	if _, err := KeyBytes("base64:!"); err == nil {
		t.Error("no error for what is not base64")
	}
}

// The format that written traces have.
func TestGoldenTrace(t *testing.T) {
	got := rows(t, "testdata/v1.jsonl")
	want := []Row{
		{Kind: Start, Node: "n1", Boot: 10, PID: 42},
		{Kind: Restored, Node: "n1", Boot: 11, Index: 4, Last: 4, T: 100, Chain: "00000000000000aa", ClusterID: "0102"},
		{Kind: Round, Node: "n1", Boot: 12, Term: 2, Round: 1, Base: 4, At: 200, Digest: "00000000000000bb",
			Calls: []Call{{Tag: 9, Op: "take", Key: "k", Algorithm: 1, Interval: 5, Burst: 3, Cost: 1, Status: "ok", Allowed: true, Remaining: 2, Reset: 5}}},
		{Kind: Applied, Node: "n1", Boot: 13, Term: 2, Base: 4, At: 200, Digest: "00000000000000bb", Outcome: "applied", Index: 5, Last: 5, T: 200, Chain: "00000000000000cc",
			Effects: []Effect{{Op: "replace", Key: "k", Identity: "01", State: "cd00000000000000", Expiry: 205}}},
		{Kind: Outcome, Node: "n1", Boot: 14, Term: 2, Round: 1, Outcome: "applied", Index: 5},
		{Kind: Local, Node: "n1", Boot: 15, At: 201, Index: 5, Upto: 6, Leading: true,
			Calls: []Call{{Tag: 10, Op: "take", Key: "k", Algorithm: 1, Interval: 5, Burst: 3, Cost: 3, Status: "ok", Retry: 4, Remaining: 2, Reset: 4}}},
		{Kind: Round, Node: "n1", Boot: 16, Term: 2, Round: 2, Base: 5, At: 300, Digest: "00000000000000dd", Calls: []Call{
			{Tag: 11, Op: "take", Key: "k", Algorithm: 4, Interval: 1e8, Burst: 3, Cost: 1, Limit: "leaky:10/1s,queue=2", Peek: true, Status: "ok", Allowed: true, Remaining: 2, Reset: 1e8, Delay: 1e8},
			{Tag: 12, Op: "takeall", Key: "k", ID: "order-7", Repeated: true, Status: "ok", Allowed: true, N: -1, Parts: []Part{
				{Key: "k", Limit: "log:3/10m", Cost: 1, Allowed: true, Remaining: 2, Reset: 600e9}, {Key: "j", Limit: "10/1s", Allowed: true, Remaining: 10}}},
			{Op: "takeall", Key: "k", Status: "ok", Retry: -1, Parts: []Part{{Key: "k", Limit: "log:3/10m", Cost: 4, Remaining: 2, Retry: -1, Reset: 600e9}}},
			{Tag: 13, Op: "take", Key: "k", Algorithm: 7, Burst: 3, Cost: -1, ID: "order-8", Limit: "log:3/10m", Status: "err"},
			{Op: "list", Key: "k", Status: "ok"}}},
		{Kind: Applied, Node: "n1", Boot: 17, Term: 2, Base: 5, At: 300, Digest: "00000000000000dd", Outcome: "applied", Index: 7, Last: 7, T: 300, Chain: "00000000000000ee", Effects: []Effect{
			{Op: "splice", Key: "k", Identity: "0780e0a596bb11", State: "2c010000000000000100000000000000", Drop: 16, Cut: 32, Expiry: 600000000300},
			{Op: "replace", NS: 16, Key: "order-7", Identity: "ff", State: "01", Expiry: 60000000300}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestReadStopsAtTheFirstErrorOfItsCaller(t *testing.T) {
	stop := errors.New("enough")
	if err := Read("testdata/v1.jsonl", func(Row) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}
