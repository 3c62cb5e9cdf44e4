package fsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// What a large snapshot has taken out of the table, and did not write, must be in the next one: changes, removals and cleared namespaces,
// in every portion, and whatever changed meanwhile.
func TestAPortionThatWasNotWrittenIsNotLost(t *testing.T) {
	dir := t.TempDir()
	s, want := openStore(t, dir), openStore(t, t.TempDir())
	f, whole := New(s), New(want)
	f.portion = 7
	step := func(index uint64, effects ...Effect) {
		t.Helper()
		for _, m := range []*FSM{f, whole} {
			apply(t, m, index, 5, effects...)
		}
	}
	var first, second []Effect
	for i := range 100 {
		first = append(first, replace(fmt.Sprint("key", i), "old", 100))
		switch {
		case i%3 == 0:
			second = append(second, replace(fmt.Sprint("key", i), "new", 100))
		case i%3 == 1:
			second = append(second, Effect{Op: OpDelete, Key: fmt.Append(nil, "key", i), Ident: []byte{1}})
		}
	}
	in1 := Effect{Op: OpReplace, NS: 1, Key: []byte("k"), Ident: []byte{1}, State: []byte("old"), Expiry: 100}
	step(1, append(first, setCluster(1, 0), in1)...)
	if err := persist(t, f, s, 1); err != nil {
		t.Fatal(err)
	}
	step(2, append(second, Effect{Op: OpClear, NS: 1})...)

	occupied := filepath.Join(dir, "snapshot.next") // so that no new file can be made
	if err := os.MkdirAll(filepath.Join(occupied, "by something"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := persist(t, f, s, 2); err == nil {
		t.Fatal("a large snapshot was written without a new file")
	}
	if err := os.RemoveAll(occupied); err != nil {
		t.Fatal(err)
	}
	if m, _ := s.Meta(); m.Index != 1 || f.Halted() != nil {
		t.Fatal(m, f.Halted())
	}
	step(3, replace("key0", "newest", 100))
	if err := persist(t, f, s, 3); err != nil {
		t.Fatal(err)
	}
	if err := persist(t, whole, want, 3); err != nil {
		t.Fatal(err)
	}
	if got, want := streamOf(t, s), streamOf(t, want); !bytes.Equal(got, want) {
		t.Errorf("the file holds\n%q\nand should hold\n%q", got, want)
	}
}

// A machine whose taken portions cannot be read again does not know any more what the file lacks: no later snapshot may pretend to.
func TestAPortionThatCannotBeReadAgainHaltsTheMachine(t *testing.T) {
	dir := t.TempDir()
	steps := 0
	s, err := snapshot.OpenStore(dir, snapshot.Options{MaxFileSize: 1 << 26, Progress: func() {
		if steps++; steps == 20 { // some portions are written, and some not
			spoil(t, filepath.Join(dir, "snapshot.runs (deleted)"))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := New(s)
	f.portion = 7
	var effects []Effect
	for i := range 2000 {
		effects = append(effects, replace(fmt.Sprint("key", i), "v", 100))
	}
	apply(t, f, 1, 5, effects...)
	if err := persist(t, f, s, 1); err == nil || steps < 20 {
		t.Fatal("damaged portions were written:", err)
	}
	if err := f.Halted(); err == nil || !strings.Contains(err.Error(), "cannot be read again") {
		t.Error(err)
	}
	if _, err := f.Snapshot(); err == nil {
		t.Error("another snapshot is begun")
	}
}

// spoil overwrites the open file of that name.
func spoil(t *testing.T, name string) {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Error(err)
	}
	for _, link := range links {
		if to, _ := os.Readlink(link); to != name {
			continue
		}
		file, err := os.OpenFile(link, os.O_RDWR, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		st, err := file.Stat()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := file.WriteAt(bytes.Repeat([]byte{0xa5}, int(st.Size())), 0); err != nil {
			t.Error(err)
		}
	}
}

// While a large snapshot is written, entries go on being applied and records being swept. Each snapshot must be the state at its index,
// byte for byte what one transaction makes of that state.
func TestPortionsBesideChangesAreTheStateAtTheirIndex(t *testing.T) {
	s, want := openStore(t, t.TempDir()), openStore(t, t.TempDir())
	f, whole := New(s), New(want)
	f.portion = 50
	r := rand.New(rand.NewPCG(7, 8))
	now := int64(10)
	type step struct {
		at      int64
		effects []Effect
	}
	batch := func() step {
		var effects []Effect
		now += r.Int64N(3)
		for range 20 {
			e := replace(fmt.Sprint("key", r.IntN(3000)), "a state", now+r.Int64N(400))
			e.NS = uint8(r.IntN(3))
			switch n := r.IntN(100); {
			case n < 50:
				e.State = le64(e.Expiry)
			case n < 70:
				e.Op, e.State = OpSplice, []byte("tail")
			case n < 80:
				e.Op = OpDelete
			case n == 80:
				e.State = bytes.Repeat([]byte("x"), 20<<10)
			}
			effects = append(effects, e)
		}
		if r.IntN(60) == 0 {
			effects = append(effects, Effect{Op: OpClear, NS: uint8(r.IntN(3))})
		}
		if r.IntN(300) == 0 {
			effects = append(effects, Effect{Op: OpClearAll})
		}
		return step{now, effects}
	}
	index := uint64(0)
	for round := range 12 {
		var later []step
		for range 60 {
			index++
			b := batch()
			for _, m := range []*FSM{f, whole} {
				apply(t, m, index, b.at, b.effects...)
			}
		}
		snap, err := f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		taken := index
		if err := persist(t, whole, want, taken); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			k, err := s.Create(1, taken, 1, raft.Configuration{}, 1, nil)
			if err == nil {
				err = snap.Persist(k)
			}
			if err == nil {
				err = k.Close()
			}
			done <- err
		}()
		for running := true; running; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
				index++
				b := batch()
				later = append(later, b)
				apply(t, f, index, b.at, b.effects...)
				f.Sweep(500)
			}
		}
		snap.Release()
		if got, want := streamOf(t, s), streamOf(t, want); !bytes.Equal(got, want) {
			t.Fatalf("round %d: the streams at %d differ (%d and %d bytes)", round, taken, len(got), len(want))
		}
		// The other machine has not applied these yet.
		for i, b := range later {
			apply(t, whole, taken+1+uint64(i), b.at, b.effects...)
		}
	}
}
