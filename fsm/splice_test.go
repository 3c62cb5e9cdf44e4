package fsm

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"limitd/snapshot"
)

// change is a splice that a state of length n allows.
type change struct {
	drop, cut int
	tail      []byte
}

// drawChange draws one, of all sizes of blocks: those that have their own page, and those in which a state only just fits.
func drawChange(t *rapid.T, n int) change {
	part := func(of int, what string) int {
		return rapid.OneOf(rapid.IntRange(0, min(of, 20)), rapid.IntRange(0, of)).Draw(t, what)
	}
	c := change{drop: part(n, "drop")}
	c.cut = part(n-c.drop, "cut")
	more := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 40), rapid.SampledFrom([]int{500, 5000, 17000, 40000})).Draw(t, "append")
	c.tail = make([]byte, more)
	fillWith := rapid.Uint32().Draw(t, "content")
	for i := range c.tail {
		fillWith = fillWith*1664525 + 1013904223
		c.tail[i] = byte(fillWith >> 24)
	}
	return c
}

func (c change) of(state []byte) []byte {
	return slices.Concat(state[c.drop:len(state)-c.cut], c.tail)
}

// Splices of records that share an arena, against plain slices: no one of them
// touches another's bytes, wherever blocks move and whatever the state was.
func TestSplicesInOneShardAgainstSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const life = int64(1<<62 + 0x0102030405)
		s := &newTable([16]byte{}).shard[0]
		want := map[string][]byte{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "key"))
			n := name{tag: uint32(key[0]), key: []byte(key), ident: []byte{1}}
			if rapid.IntRange(0, 9).Draw(t, "time") == 0 {
				s.mark(s.put(n, nil, true, life))
				want[key] = le64(life)
			}
			c := drawChange(t, len(want[key]))
			s.mark(s.splice(n, c.drop, c.cut, c.tail, life, 1))
			want[key] = c.of(want[key])
			for k, w := range want {
				b, _ := s.find(name{tag: uint32(k[0]), key: []byte(k), ident: []byte{1}})
				if b == nil || b.is(flagTomb) || b.expiry() != life || !bytes.Equal(b.state(), w) {
					t.Fatalf("%s after a splice of %s (%d, %d, %d): it is not what it should be", k, key, c.drop, c.cut, len(c.tail))
				}
			}
		}
	})
}

// spliced is a record of the model below.
type spliced struct {
	state  []byte
	expiry int64
}

// spliceWorld is a machine and its records as plain slices.
type spliceWorld struct {
	f       *FSM
	records map[string]spliced // by name as on disk
	turn    Turn               // of the next entry
	running *stateSnapshot
	frozen  map[string]spliced // records when it began
}

// alive is the state of a record at the time of the turn, if there is one.
func (w *spliceWorld) alive(name string) (state []byte, ok bool) {
	if r, ok := w.records[name]; ok && r.expiry > w.turn.At {
		return r.state, true
	}
	return nil, false
}

// effect draws an effect and does it to the model.
func (w *spliceWorld) effect(t *rapid.T) Effect {
	e := Effect{
		Op:     rapid.SampledFrom([]Op{OpSplice, OpSplice, OpSplice, OpSplice, OpSplice, OpSplice, OpReplace, OpDelete, OpClear, OpClearAll}).Draw(t, "op"),
		NS:     uint8(rapid.IntRange(0, 1).Draw(t, "ns")),
		Key:    fmt.Append(nil, rapid.IntRange(0, 3).Draw(t, "key")),
		Ident:  []byte{1},
		Expiry: w.turn.At + rapid.SampledFrom([]int64{0, 1, 3, 1 << 40, 1 << 40, 1 << 40}).Draw(t, "life"),
	}
	name := string(snapshot.AppendName(nil, e.NS, e.Key, e.Ident))
	switch e.Op {
	case OpSplice:
		before, _ := w.alive(name)
		c := drawChange(t, len(before))
		e.Drop, e.Cut, e.State = c.drop, c.cut, c.tail
		w.records[name] = spliced{c.of(before), e.Expiry}
	case OpReplace:
		e.State = le64(e.Expiry)
		w.records[name] = spliced{e.State, e.Expiry}
	case OpDelete:
		delete(w.records, name)
	default:
		if rapid.IntRange(0, 3).Draw(t, "clear") > 0 { // else they would leave little
			e = Effect{Op: OpDelete, NS: e.NS, Key: e.Key, Ident: e.Ident}
			delete(w.records, name)
			break
		}
		maps.DeleteFunc(w.records, func(n string, _ spliced) bool { return e.Op == OpClearAll || n[0] == e.NS })
	}
	return e
}

// entry applies an entry, now and then one with a splice too much, which changes nothing.
func (w *spliceWorld) entry(t *rapid.T) {
	w.turn.At += rapid.Int64Range(0, 2).Draw(t, "step")
	before := maps.Clone(w.records)
	var effects []Effect
	for range rapid.IntRange(1, 12).Draw(t, "effects") {
		effects = append(effects, w.effect(t))
	}
	want := Applied
	if rapid.IntRange(0, 9).Draw(t, "impossible") == 0 {
		state, _ := w.alive(string(snapshot.AppendName(nil, 0, []byte("0"), []byte{1})))
		n := len(state) + 1
		drop := rapid.IntRange(0, n).Draw(t, "drop too much")
		effects = append(effects, Effect{Op: OpSplice, Key: []byte("0"), Ident: []byte{1}, Drop: drop, Cut: n - drop})
		want, w.records = Void, before
	}
	index := w.f.Applied() + 1
	r := w.f.Apply(logOf(index, w.turn, effects...)).(Result)
	if r.Err != nil || r.Outcome != want {
		t.Fatalf("entry %d: %v, %v, want %v", index, r.Outcome, r.Err, want)
	}
	if want == Applied {
		w.turn.Base = index
	}
	w.turn.At = max(w.f.Time(), 1)
	w.check(t)
}

func (w *spliceWorld) check(t *rapid.T) {
	tab := w.f.Table()
	for ns := range uint8(2) {
		for key := range 4 {
			key, ident := fmt.Append(nil, key), []byte{1}
			want, exists := w.alive(string(snapshot.AppendName(nil, ns, key, ident)))
			h := tab.Hash(ns, key)
			got, expiry, ok := tab.Get(h, ns, key, ident, nil)
			if ok = ok && expiry > w.turn.At; ok != exists || ok && !bytes.Equal(got, want) {
				t.Fatalf("%d/%s has %d bytes (%v), want %d (%v), or others", ns, key, len(got), ok, len(want), exists)
			}
			tab.View(h, ns, key, ident, func(state []byte, e int64) {
				if e != expiry || !bytes.Equal(state, got) {
					t.Fatalf("View and Get differ on %d/%s", ns, key)
				}
			})
		}
	}
}

func (w *spliceWorld) begin(t *rapid.T) {
	if w.running != nil {
		return
	}
	s, err := w.f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	w.running, w.frozen = s.(*stateSnapshot), maps.Clone(w.records)
}

// end gathers the snapshot: whatever was spliced since it began is in it as it was.
func (w *spliceWorld) end(t *rapid.T) {
	if w.running == nil {
		return
	}
	gather(w.running)
	for _, r := range w.running.records {
		if len(r.Name) < 2 {
			continue // a namespace that was cleared
		}
		want, ok := w.frozen[string(r.Name)]
		if ok == r.Deleted || ok && (r.Expiry != want.expiry || !bytes.Equal(r.State, want.state)) {
			t.Fatalf("the snapshot has %q with %d bytes (deleted %v), want %d (%v), or others", r.Name, len(r.State), r.Deleted, len(want.state), ok)
		}
	}
	w.running.written = true
	w.running.Release()
	w.running = nil
}

// Whole entries, each with several splices, clears and expired records between
// them, against plain slices, while snapshots are taken.
func TestSplicesAgainstSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &spliceWorld{f: New(nil), records: map[string]spliced{}, turn: Turn{Term: 1, At: 1, Version: VersionCut}}
		t.Repeat(map[string]func(*rapid.T){"entry": w.entry, "begin": w.begin, "end": w.end})
	})
}
