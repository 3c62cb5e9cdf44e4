package fsm

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

var rewrite = flag.Bool("update", false, "write the golden files of a new format version; those of an old one never change")

// step is an entry of the golden history and where raft put it.
type step struct {
	says        string
	index, term uint64
	turn        Turn
	effects     []Effect
}

// goldenHistory goes through every rule of FORMAT.md under "What an entry does", but for the state above 16 MiB.
func goldenHistory() []step {
	const (
		t0    = int64(1_700_000_000_000_000_000)
		later = t0 + 1_000_000_000
		never = int64(1 << 62)
		day   = 24 * 3600 * int64(1e9)
	)
	id := setCluster(0xc1, 1)
	return []step{
		{"the first entry may carry any time; it sets the cluster id", 3, 2, Turn{0, 2, t0, 1}, []Effect{id, replace("k", "old", never)}},
		{"a tick", 4, 2, Turn{3, 2, t0 + 1, 1}, nil},
		{"time does not go back", 7, 2, Turn{4, 2, t0 - 1, 1}, nil},
		{"a record of each kind", 8, 2, Turn{7, 2, later, 1}, []Effect{
			{Op: OpReplace, Key: []byte("tat"), Ident: []byte{1}, State: le64(later + 5), Expiry: later + 5},
			{Op: OpReplace, NS: 15, Ident: []byte("\x02day"), State: []byte{}, Expiry: never},
			splice("log", 0, "12345678", never),
			replace("gone", "expired on arrival", later),
		}},
		{"a splice drops and appends", 9, 2, Turn{8, 2, later, 1}, []Effect{splice("log", 3, "9", never-1)}},
		{"the expiry of a splice is the record's", 10, 2, Turn{9, 2, later, 1}, []Effect{splice("short", 0, "abc", later+1)}},
		{"a splice of an expired record starts from nothing", 11, 2, Turn{10, 2, later + 1, 1}, []Effect{splice("short", 0, "x", never)}},
		{"effects take place in their order", 12, 2, Turn{11, 2, later + 1, 1}, []Effect{
			{Op: OpReplace, NS: 1, Key: []byte("a"), Ident: []byte{1}, State: []byte("before"), Expiry: never},
			{Op: OpClear, NS: 1},
			{Op: OpReplace, NS: 1, Key: []byte("b"), Ident: []byte{1}, State: []byte("after"), Expiry: never},
			{Op: OpDelete, Key: []byte("k"), Ident: []byte{1}},
			{Op: OpDelete, Key: []byte("never was"), Ident: []byte{1}},
			splice("twice", 0, "one", never), splice("twice", 2, "two", never),
		}},
		{"void: decided on an older batch", 13, 2, Turn{11, 2, later + 2, 1}, []Effect{replace("k", "void", never)}},
		{"void: decided in another term than it was appended in", 14, 4, Turn{12, 2, later + 2, 1}, []Effect{replace("k", "void", never)}},
		{"void: a second cluster id", 15, 4, Turn{12, 4, later + 2, 1}, []Effect{replace("k", "void", never), id}},
		{"void: a splice that drops more than there is", 16, 4, Turn{12, 4, later + 2, 1}, []Effect{replace("k", "void", never), splice("log", 7, "", never)}},
		{"void: more than 400 days ahead", 17, 4, Turn{12, 4, later + 1 + 400*day + 1, 1}, []Effect{replace("k", "void", never)}},
		{"the calendar offset", 18, 4, Turn{12, 4, later + 2, 1}, []Effect{{Op: OpSetOffset, State: le64(-3_600_000_000_000)}}},
		{"400 days ahead", 19, 5, Turn{18, 5, later + 2 + 400*day, 1}, []Effect{replace("last", "one", never)}},
	}
}

// goldenClearing follows the history, whose end would be empty otherwise.
func goldenClearing() []step {
	const t = int64(1_740_000_000_000_000_000)
	return []step{
		{"clear all", 20, 5, Turn{19, 5, t, 1}, []Effect{{Op: OpClearAll}, replace("new", "state", t+1)}},
		{"halt: decided on a batch that this node has not seen", 21, 5, Turn{21, 5, t, 1}, nil},
	}
}

// cutHistory is what version 2 adds: splices that cut at the end.
func cutHistory() []step {
	const (
		t0    = int64(1_700_000_000_000_000_000)
		later = t0 + 1_000_000_000
		never = int64(1 << 62)
	)
	clear1 := Effect{Op: OpClear, NS: 1}
	in1 := func(e Effect) Effect { e.NS = 1; return e }
	return []step{
		{"some records", 3, 2, Turn{0, 2, t0, 2}, []Effect{
			setCluster(0xc1, 1), splice("log", 0, "0123456789", never), splice("all", 0, "abc", never), splice("short", 0, "abc", later),
			{Op: OpReplace, Key: []byte("tat"), Ident: []byte{1}, State: le64(later + 5), Expiry: later + 5},
		}},
		{"a cut", 4, 2, Turn{3, 2, t0, 2}, []Effect{cut("log", 0, 1, "", never)}},
		{"drop, cut and append", 5, 2, Turn{4, 2, t0, 2}, []Effect{cut("log", 2, 3, "xy", never-1)}},
		{"all of it", 6, 2, Turn{5, 2, t0, 2}, []Effect{cut("all", 1, 2, "", never)}},
		{"of a state that is its expiry", 7, 2, Turn{6, 2, t0, 2}, []Effect{cut("tat", 1, 6, "z", never)}},
		{"several of one record, with a clear between", 8, 2, Turn{7, 2, t0, 2}, []Effect{
			in1(splice("log", 0, "gone", never)), clear1, in1(splice("log", 0, "12345", never)), in1(cut("log", 0, 2, "67", never)), in1(cut("log", 1, 1, "", never)),
		}},
		{"void: more than there is", 9, 2, Turn{8, 2, t0, 2}, []Effect{replace("k", "void", never), cut("log", 0, 7, "", never)}},
		{"void: more than there is, with the drop", 10, 2, Turn{8, 2, t0, 2}, []Effect{replace("k", "void", never), cut("log", 4, 3, "", never)}},
		{"void: of a record that is cleared before it", 11, 2, Turn{8, 2, t0, 2}, []Effect{clear1, in1(cut("log", 0, 1, "", never))}},
		{"void: of a record that has expired", 12, 2, Turn{8, 2, later, 2}, []Effect{cut("short", 0, 1, "", never)}},
	}
}

// The files are what entries of a version do, with the state after each and the
// stream of the state that they make. A release that does anything else with one of
// them differs from its neighbours during a rolling upgrade.
func TestGoldenHistoryV1(t *testing.T) {
	compareHistory(t, 1, goldenHistory(), goldenClearing())
}

func TestGoldenHistoryV2(t *testing.T) {
	compareHistory(t, 2, cutHistory(), []step{
		{"halt: decided on a batch that this node has not seen", 13, 2, Turn{13, 2, 1_700_000_000_000_000_000, 2}, nil},
	})
}

// compareHistory writes down what steps do, the stream, and what the last ones do, of which the last halts.
func compareHistory(t *testing.T, version int, steps, last []step) {
	path := fmt.Sprintf("testdata/history-v%d.txt", version)
	f := New(nil)
	var b strings.Builder
	fmt.Fprintf(&b, "# What entries of version %d do: index, term, bytes; what became of it, and the state after it.\n", version)
	run := func(steps []step) {
		for _, s := range steps {
			l := &raft.Log{Index: s.index, Term: s.term, Type: raft.LogCommand, Data: AppendEntry(nil, s.turn, s.effects)}
			r := f.Apply(l).(Result)
			st := f.State()
			fmt.Fprintf(&b, "\n# %s\nentry %d %d %x\n%v applied=%d last=%d t=%d offset=%d chain=%016x\n", s.says, l.Index, l.Term, l.Data, r.Outcome, st.Applied, st.Last, st.T, st.Offset, st.Chain)
		}
	}
	run(steps)
	store := openStore(t, t.TempDir())
	if err := persist(t, f, store, f.Applied()); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "\n# the stream of this state\nstream %x\n", streamOf(t, store))
	run(last)
	if *rewrite {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := readFile(t, path); b.String() != want {
		t.Errorf("%s has\n%s\nnow it is\n%s", path, want, b.String())
	}
	if f.Halted() == nil {
		t.Error("the last entry does not halt the machine")
	}
}

// The same entries under a later version do the same: a version number is no part
// of what an entry means. Only the chain goes on with other bytes.
func TestHistoryOfEveryVersionEndsInOneState(t *testing.T) {
	var want string
	for version := uint8(1); version <= ReadsEntry; version++ {
		f := New(nil)
		for _, s := range goldenHistory() {
			s.turn.Version = version
			f.Apply(&raft.Log{Index: s.index, Term: s.term, Type: raft.LogCommand, Data: AppendEntry(nil, s.turn, s.effects)})
		}
		st := f.State()
		st.Chain = 0
		got := fmt.Sprint(st, get(f, 0, "last"), get(f, 0, "log"))
		if want == "" {
			want = got
		}
		if got != want || f.Halted() != nil {
			t.Errorf("version %d ends in %s, version 1 in %s (%v)", version, got, want, f.Halted())
		}
	}
}

// A node reads what is in its log from before it was upgraded.
func TestEntriesOfTheGoldenHistoriesAreReadAgain(t *testing.T) {
	for path, want := range map[string]struct {
		entries int
		halts   uint64
		last    uint64
	}{
		"testdata/history-v1.txt": {len(goldenHistory()) + len(goldenClearing()), 21, 20},
		"testdata/history-v2.txt": {len(cutHistory()) + 1, 13, 8},
	} {
		f := New(nil)
		n := 0
		for line := range strings.Lines(readFile(t, path)) {
			var l raft.Log
			var digits string
			if _, err := fmt.Sscanf(line, "entry %d %d %s", &l.Index, &l.Term, &digits); err != nil {
				continue
			}
			data, err := hex.DecodeString(digits)
			if err != nil {
				t.Fatal(err)
			}
			l.Data = data
			if r := f.Apply(&l).(Result); (r.Err != nil) != (l.Index == want.halts) {
				t.Fatalf("%s, entry %d: %v", path, l.Index, r.Err)
			}
			n++
		}
		if n != want.entries || f.State().Last != want.last {
			t.Errorf("%s: %d entries, then %+v", path, n, f.State())
		}
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
