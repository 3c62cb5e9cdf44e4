package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"limitd/snapshot"
)

// footprint is what a node holds for its state.
type footprint struct {
	table int64 // bytes of pages and slots
	heap  int64 // Go's heap after a collection, the table included
	file  int64 // of the snapshot file, up to the last page in use: it is lengthened by 16 MiB at a time
}

func (f footprint) String() string {
	return fmt.Sprintf("table %d KiB, heap %d KiB, file %d KiB", f.table>>10, f.heap>>10, f.file>>10)
}

// churn is keys that come and expire.
type churn struct {
	name    string
	births  int // new keys in five minutes; they live for up to an hour
	key     func(r *rand.Rand, n int) []byte
	state   func(r *rand.Rand, expiry int64) []byte
	flushes func(minute int) []Effect // nil: none
}

func anyKey(r *rand.Rand, _ int) []byte { return fmt.Appendf(nil, "session:%016x", r.Uint64()) }

func tat(_ *rand.Rand, expiry int64) []byte { return le64(expiry) }

// anySize is mostly a time, often a log, and now and then one that has a page of its own.
func anySize(r *rand.Rand, expiry int64) []byte {
	switch n := r.IntN(100); {
	case n == 0:
		return bytes.Repeat([]byte{1}, 20<<10)
	case n < 30:
		return bytes.Repeat([]byte{1}, r.IntN(2000))
	}
	return le64(expiry)
}

// A day of keys that come and expire leaves a node as it was after two hours: what
// was removed is used again, in memory and in the file.
func TestADayOfChurnLeavesMemoryAndFileFlat(t *testing.T) {
	for _, c := range []churn{
		{name: "keys at random", births: 200, key: anyKey, state: tat},
		{name: "keys in order", births: 200, key: func(_ *rand.Rand, n int) []byte { return key(n) }, state: tat},
		{name: "keys and states of all sizes", births: 80, state: anySize, key: func(r *rand.Rand, n int) []byte {
			return fmt.Appendf(nil, "%0*x", 4+r.IntN(200), n)
		}},
		{name: "namespaces that are flushed", births: 80, key: anyKey, state: anySize, flushes: func(minute int) []Effect {
			switch {
			case minute%240 == 0:
				return []Effect{{Op: OpClearAll}}
			case minute%30 == 0:
				return []Effect{{Op: OpClear, NS: uint8(minute / 30 % 4)}}
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

// highWater is the end of the last page that a bbolt file has in use, by the newer
// one of its meta pages.
func highWater(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var pages, newest uint64
	for i := range int64(2) {
		var meta [16 + 64]byte
		if _, err := file.ReadAt(meta[:], i*int64(os.Getpagesize())); err != nil {
			t.Fatal(err)
		}
		ne := binary.NativeEndian
		if txid := ne.Uint64(meta[16+48:]); i == 0 || txid > newest {
			newest, pages = txid, ne.Uint64(meta[16+40:])
		}
	}
	return int64(pages) * int64(os.Getpagesize())
}

func (c *churn) run(t *testing.T) {
	s := openStore(t, t.TempDir())
	f := New(s)
	r := rand.New(rand.NewPCG(24, 60))
	measure := func() footprint {
		runtime.GC()
		runtime.GC() // what the first one let go of by finalizers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return footprint{f.Table().Bytes(), int64(m.HeapAlloc), highWater(t, s.Path())}
	}
	var early, late footprint // the most at the ends of hours 2 to 4, and 22 to 24
	most := func(at *footprint) {
		now := measure()
		at.table, at.heap, at.file = max(at.table, now.table), max(at.heap, now.heap), max(at.file, now.file)
	}
	n, recent := 0, make([][]byte, 1000)
	for minute := 5; minute <= 24*60; minute += 5 {
		now := int64(minute) * int64(time.Minute)
		var batch []Effect
		if c.flushes != nil {
			batch = c.flushes(minute)
		}
		for i := range c.births * 5 / 4 {
			k := c.key(r, n)
			if i >= c.births { // a key of before is used again
				if k = recent[r.IntN(len(recent))]; k == nil {
					continue
				}
			}
			recent[n%len(recent)] = k
			n++
			expiry := now + r.Int64N(int64(time.Hour))
			batch = append(batch, Effect{Op: OpReplace, NS: uint8(len(k) % 4), Key: k, Ident: []byte{1}, State: c.state(r, expiry), Expiry: expiry})
		}
		apply(t, f, f.Applied()+1, now, batch...)
		f.Sweep(1 << 20) // a node is through a table of this size sooner
		if minute%15 == 0 {
			if err := persist(t, f, s, f.Applied()); err != nil {
				t.Fatal(err)
			}
		}
		if hour := minute / 60; minute%60 == 0 && hour >= 2 && hour <= 4 {
			most(&early)
		} else if minute%60 == 0 && hour >= 22 {
			most(&late)
		}
	}
	t.Logf("hours 2 to 4: %s; hours 22 to 24: %s", early, late)
	// Sizes are drawn, so a plateau is no line; what leaks a record in fifty is above it.
	grew := func(late, early int64) bool { return late > early*6/5+64<<10 }
	if grew(late.table, early.table) || grew(late.heap, early.heap) || grew(late.file, early.file) {
		t.Errorf("it grew: hours 2 to 4: %s; hours 22 to 24: %s", early, late)
	}
	c.nothingIsLeft(t, f, s)
}

// nothingIsLeft lets all records expire: then none is held, not even as a mark of its
// removal, in the table or in the file.
func (c *churn) nothingIsLeft(t *testing.T, f *FSM, s *snapshot.Store) {
	t.Helper()
	apply(t, f, f.Applied()+1, f.Time()+int64(time.Hour))
	f.Sweep(1 << 30)
	if err := persist(t, f, s, f.Applied()); err != nil {
		t.Fatal(err)
	}
	if n, _ := f.Pending(); n != 0 || !f.Table().empty() {
		t.Errorf("all has expired, and the table holds something (%d records changed)", n)
	}
	rc := open(t, s)
	defer rc.Close()
	r, _ := snapshot.FromReader(rc)
	left := 0
	count := func(snapshot.Record) error { left++; return nil }
	if err := r.EachExpired(count, func([]byte) error { left++; return nil }); err != nil || left > 0 {
		t.Errorf("all has expired, and the file holds %d records (%v)", left, err)
	}
}
