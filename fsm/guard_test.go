package fsm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// apply applies a batch of the term 1 on the machine's own state.
func apply(t testing.TB, f *FSM, index uint64, at int64, effects ...Effect) Result {
	t.Helper()
	r := f.Apply(logOf(index, Turn{f.State().Last, 1, at, ReadsEntry}, effects...)).(Result)
	if r.Err != nil || r.Outcome != Applied {
		t.Fatalf("entry %d: %v, %v", index, r.Outcome, r.Err)
	}
	return r
}

func logOf(index uint64, turn Turn, effects ...Effect) *raft.Log {
	return &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: AppendEntry(nil, turn, effects)}
}

func replace(key, state string, expiry int64) Effect {
	return Effect{Op: OpReplace, Key: []byte(key), Ident: []byte{1}, State: []byte(state), Expiry: expiry}
}

func splice(key string, drop int, tail string, expiry int64) Effect {
	return Effect{Op: OpSplice, Key: []byte(key), Ident: []byte{1}, Drop: drop, State: []byte(tail), Expiry: expiry}
}

// cut is a splice that cuts, which only an entry of VersionCut can have.
func cut(key string, drop, cut int, tail string, expiry int64) Effect {
	e := splice(key, drop, tail, expiry)
	e.Cut = cut
	return e
}

func setCluster(id byte, generation int64) Effect {
	e := Effect{Op: OpSetCluster, State: make([]byte, 16, 24)}
	e.State[0] = id
	e.State = append(e.State, le64(generation)...)
	return e
}

// get returns the record's state, "-" if there is none that is live at T.
func get(f *FSM, ns uint8, key string) string {
	t := f.Table()
	state, expiry, ok := t.Get(t.Hash(ns, []byte(key)), ns, []byte(key), []byte{1}, nil)
	if !ok || expiry <= f.Time() {
		return "-"
	}
	return string(state)
}

func TestGuard(t *testing.T) {
	const now, never = int64(1e18), int64(1 << 62)
	for _, c := range []struct {
		name string
		log  *raft.Log
		want Outcome
		halt string
	}{
		{"decided on the last batch", logOf(20, Turn{10, 1, now + 1, 1}, replace("k", "new", never)), Applied, ""},
		{"nothing in it: a tick", logOf(20, Turn{10, 1, now + 1, 1}), Applied, ""},
		{"time goes back", logOf(20, Turn{10, 1, now - 1, 1}, replace("k", "new", never)), Applied, ""},
		{"400 days ahead", logOf(20, Turn{10, 1, now + int64(maxStep), 1}), Applied, ""},
		{"decided on an older batch", logOf(20, Turn{9, 1, now + 1, 1}, replace("k", "new", never)), Void, ""},
		{"decided in another term", logOf(20, Turn{10, 2, now + 1, 1}, replace("k", "new", never)), Void, ""},
		{"more than 400 days ahead", logOf(20, Turn{10, 1, now + int64(maxStep) + 1, 1}, replace("k", "new", never)), Void, ""},
		{"a second cluster id", logOf(20, Turn{10, 1, now + 1, 1}, replace("k", "new", never), setCluster(2, 0)), Void, ""},
		{"a drop beyond the state", logOf(20, Turn{10, 1, now + 1, 1}, replace("k", "new", never), splice("s", 4, "x", never)), Void, ""},
		{"a cut beyond the state", logOf(20, Turn{10, 1, now + 1, VersionCut}, replace("k", "new", never), cut("s", 2, 2, "x", never)), Void, ""},
		{"decided on a batch that never was", logOf(20, Turn{11, 1, now + 1, 1}, replace("k", "new", never)), Unknown,
			"entry 20 of the log was decided after entry 11 took effect, which this node has not seen (its last is 10)"},
		{"newer version", &raft.Log{Index: 20, Data: seal(append([]byte{9}, make([]byte, 40)...))}, Unknown,
			fmt.Sprintf("entry 20 of the log: unknown entry version 9, this limitd reads versions up to %d: a newer one wrote the entry; start this node with", ReadsEntry)},
		{"damaged", &raft.Log{Index: 20, Data: []byte("nonsense, but long enough to be an entry")}, Unknown, "entry 20 of the log: damaged entry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New(nil)
			apply(t, f, 10, now, setCluster(1, 0), replace("k", "old", never), replace("s", "123", never))
			before := f.State()
			r := f.Apply(c.log).(Result)
			if r.Outcome != c.want || (r.Err != nil) != (c.halt != "") {
				t.Fatalf("%v, %v", r.Outcome, r.Err)
			}
			after := f.State()
			switch c.want {
			case Applied:
				if after.Last != 20 || after.T < before.T || after.Chain == before.Chain || after.Applied != 20 {
					t.Errorf("%+v", after)
				}
			case Void:
				if before.Applied = 20; after != before || get(f, 0, "k") != "old" || get(f, 0, "s") != "123" {
					t.Errorf("a void batch changed something: %+v, %+v", before, after)
				}
			case Unknown:
				if f.Halted() == nil || f.Halted() != r.Err || !strings.Contains(r.Err.Error(), c.halt) {
					t.Errorf("halted: %v", f.Halted())
				}
				next := f.Apply(logOf(21, Turn{10, 1, now + 1, 1}, replace("k", "new", never))).(Result)
				f.StoreConfiguration(22, raft.Configuration{})
				if next.Err != r.Err || next.Outcome != Unknown || f.State() != before || get(f, 0, "k") != "old" {
					t.Errorf("a halted machine went on: %v", next)
				}
				if _, err := f.Snapshot(); err == nil {
					t.Error("a halted machine gives a snapshot")
				}
			}
		})
	}
}

func TestFirstEntryMayCarryAnyTime(t *testing.T) {
	f := New(nil)
	apply(t, f, 1, 1<<62)
	if f.Time() != 1<<62 {
		t.Error(f.Time())
	}
	if r := f.Apply(logOf(2, Turn{1, 1, -1 << 63, 1})).(Result); r.Outcome != Applied || f.Time() != 1<<62 {
		t.Errorf("%v, T %d", r, f.Time())
	}
}

// In equal states a splice that is impossible is void everywhere; a node that alone finds it so stops at the next batch.
func TestNodeThatLostARecordStopsAtTheNextBatch(t *testing.T) {
	good, bad := New(nil), New(nil)
	apply(t, good, 1, 1, replace("log", "12345678", 100))
	apply(t, bad, 1, 1, replace("other", "12345678", 100))
	for i, f := range []*FSM{good, bad} {
		l := logOf(2, Turn{1, 1, 2, 1}, splice("log", 4, "x", 100))
		if r := f.Apply(l).(Result); r.Outcome != []Outcome{Applied, Void}[i] {
			t.Fatalf("node %d: %v", i, r)
		}
		f.Apply(logOf(3, Turn{2, 1, 3, 1}))
	}
	if good.Halted() != nil || bad.Halted() == nil {
		t.Errorf("%v, %v", good.Halted(), bad.Halted())
	}
}

func TestClusterIDAndOffset(t *testing.T) {
	f := New(nil)
	zero := f.Table().Hash(0, []byte("k"))
	apply(t, f, 1, 5, setCluster(7, 3), Effect{Op: OpSetOffset, State: le64(-9)}, replace("k", "v", 100))
	s := f.State()
	if s.ClusterID[0] != 7 || s.Generation != 3 || s.Offset != -9 || get(f, 0, "k") != "v" {
		t.Errorf("%+v", s)
	}
	if f.Table().Hash(0, []byte("k")) == zero {
		t.Error("the hash does not depend on the cluster")
	}
	if f.Table().Hash(0, []byte("k")) == f.Table().Hash(1, []byte("k")) {
		t.Error("the hash does not depend on the namespace")
	}

	late := New(nil) // a table in use keeps its key, and its records
	apply(t, late, 1, 5, replace("k", "v", 100))
	apply(t, late, 2, 5, setCluster(7, 3))
	if get(late, 0, "k") != "v" || late.State().ClusterID[0] != 7 {
		t.Errorf("%+v", late.State())
	}
}

func TestOnAppliedIsToldOfEveryIndex(t *testing.T) {
	f := New(nil)
	var seen []uint64
	f.OnApplied(func(i uint64) {
		if f.Applied() != i {
			t.Errorf("told of %d at %d", i, f.Applied())
		}
		seen = append(seen, i)
	})
	apply(t, f, 1, 1)
	f.StoreConfiguration(2, raft.Configuration{})
	f.Apply(logOf(3, Turn{0, 1, 1, 1}))
	if len(seen) != 3 || seen[2] != 3 || f.State().Applied != 3 || f.State().Last != 1 {
		t.Errorf("%v, %+v", seen, f.State())
	}
}
