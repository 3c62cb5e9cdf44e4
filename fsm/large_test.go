package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"
)

// A log of calls as an algorithm would keep it: entries of 16 bytes, the oldest in
// front. These tests know nothing else of it.
const (
	logEntry   = 16
	largeLog   = 100_000 // entries: 1.6 MB
	largeLives = int64(1 << 62)
)

func logEntries(from, n int) []byte {
	b := make([]byte, 0, n*logEntry)
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, uint64(from+i))
		b = binary.LittleEndian.AppendUint64(b, uint64(from+i)*0x9e3779b97f4a7c15)
	}
	return b
}

// A state of 1.6 MB goes through all that a state goes through: entries, readers,
// a snapshot that is written while it changes, a restart.
func TestLogOf100000Entries(t *testing.T) {
	store := openStore(t, t.TempDir())
	f := New(store)
	want := logEntries(0, largeLog)
	same := func(when string, f *FSM) {
		t.Helper()
		key := []byte("log")
		tab := f.Table()
		h := tab.Hash(0, key)
		state, _, _ := tab.Get(h, 0, key, []byte{1}, nil)
		seen := false
		tab.View(h, 0, key, []byte{1}, func(s []byte, expiry int64) { seen = expiry == largeLives && bytes.Equal(s, want) })
		if !bytes.Equal(state, want) || !seen {
			t.Fatalf("%s: %d bytes, want %d, or others (seen in place: %v)", when, len(state), len(want), seen)
		}
	}
	apply(t, f, 1, 1, setCluster(1, 1), replace("log", string(want), largeLives), replace("small", "s", largeLives))
	same("as it came", f)
	if err := persist(t, f, store, 1); err != nil {
		t.Fatal(err)
	}

	r := rand.New(rand.NewPCG(16, 100_000))
	next := largeLog
	splices := func(n int) {
		t.Helper()
		for range n {
			e := cut("log", logEntry*r.IntN(3), logEntry*r.IntN(2), string(logEntries(next, r.IntN(3))), largeLives)
			next += len(e.State) / logEntry
			want = append(want[e.Drop:len(want)-e.Cut:len(want)-e.Cut], e.State...)
			apply(t, f, f.Applied()+1, 1, e, splice("small", 0, "s", largeLives))
		}
	}
	splices(500)
	same("after 500 splices", f)
	began := bytes.Clone(want)
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	splices(500)
	same("after 1000 splices, half of them during a snapshot", f)
	x := snap.(*stateSnapshot)
	gather(x)
	if len(x.records) != 2 || !bytes.Equal(x.records[0].State, began) {
		t.Error("the snapshot does not have the state of when it began")
	}
	snap.Release() // not written: the next one has it
	if err := persist(t, f, store, f.Applied()); err != nil {
		t.Fatal(err)
	}

	g := New(store)
	if err := g.Restore(open(t, store)); err != nil {
		t.Fatal(err)
	}
	same("after a restart", g)
	other := openStore(t, t.TempDir())
	k, err := other.Create(1, f.Applied(), 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(streamOf(t, store)); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	g = New(other)
	if err := g.Restore(open(t, other)); err != nil {
		t.Fatal(err)
	}
	same("on a node that was sent the stream", g)
	f = g
	splices(10)
	same("after more splices there", f)
}

// A state that grows by little is not moved each time: what it costs to grow is in
// proportion to what it becomes.
func TestGrowthOfAStateIsAmortized(t *testing.T) {
	s := &newTable([16]byte{}).shard[0]
	n := name{tag: 1, key: []byte("log"), ident: []byte{1}}
	entry := logEntries(0, 1)
	moves, moved := 0, 0
	for range largeLog {
		before, _ := s.find(n)
		s.mark(s.splice(n, 0, 0, entry, largeLives, 1))
		if after, _ := s.find(n); before != nil && &before[0] != &after[0] {
			moves++
			moved += before.size()
		}
	}
	b, _ := s.find(n)
	t.Logf("%d moves of %d bytes for a state of %d, which holds %d", moves, moved, b.stateLen(), s.held)
	if moves > 150 || moved > 12*b.stateLen() || int64(b.stateLen())*3/2 < s.held {
		t.Errorf("%d moves of %d bytes for a state of %d; the shard holds %d", moves, moved, b.stateLen(), s.held)
	}
}

// BenchmarkSplice is what a splice of 16 bytes costs in the shard of a log of that
// many entries: an append to one that grows, the same with a drop in front or a cut
// at the end, by which it stays as long as it is.
func BenchmarkSplice(b *testing.B) {
	for _, entries := range []int{10, 100, 1000, 10_000, largeLog} {
		for _, x := range []struct {
			what      string
			drop, cut int
		}{{"append", 0, 0}, {"drop and append", logEntry, 0}, {"cut and append", 0, logEntry}} {
			b.Run(fmt.Sprintf("%d/%s", entries, x.what), func(b *testing.B) {
				s := &newTable([16]byte{}).shard[0]
				n := name{tag: 1, key: []byte("log"), ident: []byte{1}}
				whole := logEntries(0, entries)
				entry := whole[:logEntry]
				s.mark(s.put(n, whole, false, largeLives))
				size := len(whole)
				b.ReportAllocs()
				for b.Loop() {
					if size += logEntry - x.drop - x.cut; size > 2*len(whole) {
						s.mark(s.put(n, whole, false, largeLives))
						size = len(whole) + logEntry
					}
					s.mark(s.splice(n, x.drop, x.cut, entry, largeLives, 1))
				}
			})
		}
	}
}

// BenchmarkView is a look at a log, beside a copy of it.
func BenchmarkView(b *testing.B) {
	for _, entries := range []int{100, 10_000, largeLog} {
		f := New(nil)
		apply(b, f, 1, 1, replace("log", string(logEntries(0, entries)), largeLives))
		tab, key := f.Table(), []byte("log")
		h := tab.Hash(0, key)
		b.Run(fmt.Sprintf("%d/View", entries), func(b *testing.B) {
			for b.Loop() {
				tab.View(h, 0, key, []byte{1}, func([]byte, int64) {})
			}
		})
		b.Run(fmt.Sprintf("%d/Get", entries), func(b *testing.B) {
			var dst []byte
			for b.Loop() {
				dst, _, _ = tab.Get(h, 0, key, []byte{1}, dst)
			}
		})
	}
}
