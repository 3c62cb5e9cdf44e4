package limiter

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"limitd/fsm"
)

// What a write set proposes must do to the table's record what its changes did
// in the round, one after the other.
func TestEffectsAddUpToTheChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blob := func(label string, n int) []byte {
			return rapid.SliceOfN(rapid.Byte(), 0, n).Draw(t, label)
		}
		before := blob("before", 40)
		inTable := len(before) > 0
		state := bytes.Clone(before) // what the record is, empty: absent
		w := newWriteSet()
		w.reset()
		_, slot := w.find(7, 0, []byte("k"), []byte{1})
		r := w.add(slot, 7, 0, []byte("k"), []byte{1}, inTable)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			switch rapid.IntRange(0, 4).Draw(t, "change") {
			case 0:
				state = append([]byte{9}, blob("state", 40)...)
				r.replace(state, 1)
			case 1:
				r.remove()
				state = nil
			case 2: // a splice of what has expired meanwhile
				tail := append([]byte{7}, blob("tail", 20)...)
				r.splice(nil, 0, 0, tail, 1)
				state = tail
			default:
				drop := rapid.IntRange(0, len(state)).Draw(t, "drop")
				cut := rapid.IntRange(0, len(state)-drop).Draw(t, "cut")
				tail := append([]byte{8}, blob("tail", 20)...)
				r.splice(state, drop, cut, tail, 1)
				state = append(bytes.Clone(state[drop:len(state)-cut]), tail...)
			}
			if !bytes.Equal(r.state(), state) {
				t.Fatalf("in the round: %x, want %x", r.state(), state)
			}
			state = bytes.Clone(state)
		}
		got := bytes.Clone(before)
		for _, e := range w.effectsOf() {
			switch e.Op {
			case fsm.OpReplace:
				got = bytes.Clone(e.State)
			case fsm.OpSplice:
				got = append(got[e.Drop:len(got)-e.Cut], e.State...)
			case fsm.OpDelete:
				got = nil
			default:
				t.Fatalf("op %d", e.Op)
			}
		}
		if !bytes.Equal(got, state) {
			t.Fatalf("applied: %x, want %x (before %x)", got, state, before)
		}
	})
}

func TestAWriteSetGrows(t *testing.T) {
	w := newWriteSet()
	w.reset()
	key := func(i int) []byte { return []byte{byte(i), byte(i >> 8), byte(i >> 16)} }
	const n = 50_000
	for i := range n {
		_, slot := w.find(uint64(i*31), 0, key(i), []byte{1})
		w.add(slot, uint64(i*31), 0, key(i), []byte{1}, false).replace([]byte{1}, 1)
	}
	for i := range n {
		if r, _ := w.find(uint64(i*31), 0, key(i), []byte{1}); r == nil || !bytes.Equal(r.key, key(i)) {
			t.Fatalf("record %d is lost", i)
		}
	}
	w.reset()
	if r, _ := w.find(31, 0, key(1), []byte{1}); r != nil {
		t.Fatal("a record outlived reset")
	}
}
