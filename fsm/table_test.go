package fsm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func key(i int) []byte { return fmt.Appendf(nil, "user:%019d", i) } // 24 bytes

// admit makes the record of an admission: its state is its expiry.
func admit(i int, tat int64) Effect {
	return Effect{Op: OpReplace, Key: key(i), Ident: []byte{1}, State: le64(tat), Expiry: tat}
}

// fill applies n keys in batches of 8192.
func fill(t testing.TB, f *FSM, n int, expiry int64) {
	var batch []Effect
	for i := range n {
		if batch = append(batch, admit(i, expiry)); len(batch) == 8192 || i == n-1 {
			apply(t, f, f.Applied()+1, 1, batch...)
			batch = batch[:0]
		}
	}
}

func TestRecordsOfOneKeyAreTold(t *testing.T) {
	f := New(nil)
	var effects []Effect
	for i := range 200 {
		effects = append(effects, Effect{Op: OpReplace, NS: uint8(i % 2), Key: []byte("k"), Ident: []byte{byte(i/2 + 1)}, State: []byte{byte(i)}, Expiry: int64(i)})
	}
	apply(t, f, 1, 50, effects...)
	tab := f.Table()
	n := 0
	tab.Records(tab.Hash(1, []byte("k")), 1, []byte("k"), func(r Record) {
		n++
		if i := int(r.Ident[0]-1)*2 + 1; r.State[0] != byte(i) || r.Expiry != int64(i) {
			t.Errorf("record %x: %x, %d", r.Ident, r.State, r.Expiry)
		}
	})
	if n != 100 || tab.Len(1) != 100 {
		t.Errorf("%d records of 100, Len %d", n, tab.Len(1))
	}
	if _, _, ok := tab.Get(tab.Hash(1, []byte("k")), 1, []byte("k"), []byte{101}, nil); ok {
		t.Error("a record with another identity was found")
	}
	if state, expiry, ok := tab.Get(tab.Hash(0, []byte("k")), 0, []byte("k"), []byte{1}, []byte("old content")); !ok || expiry != 0 || !bytes.Equal(state, []byte{0}) {
		t.Errorf("an expired record reads as %x, %d, %v", state, expiry, ok)
	}
}

// The memory of a key is that of the records that still mean something: what it took to write them.
func TestMemoryOfAKey(t *testing.T) {
	f := New(nil)
	tab := f.Table()
	memory := func(now int64) int64 { return tab.Memory(tab.Hash(0, []byte("log")), 0, []byte("log"), now) }
	if n := memory(0); n != 0 {
		t.Errorf("%d bytes of no record", n)
	}
	big := Effect{Op: OpReplace, Key: []byte("log"), Ident: []byte{2}, State: bytes.Repeat([]byte("x"), 5000), Expiry: 200}
	apply(t, f, 1, 1, replace("other", "s", 100), replace("log", "s", 100))
	small := memory(1)
	apply(t, f, 2, 1, big)
	if both := memory(1); small != 24+slotSize || both < small+5000 || both > small+5000+5000/8+64 {
		t.Errorf("a state of one byte takes %d bytes, and with one of 5000 the key takes %d", small, both)
	}
	if at150, at200 := memory(150), memory(200); at150 != memory(1)-small || at200 != 0 {
		t.Errorf("%d bytes when the small one is over, %d when both are", at150, at200)
	}
}

func TestLargeStatesGrowShrinkAndGo(t *testing.T) {
	f := New(nil)
	big := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	apply(t, f, 1, 1, replace("log", string(big), 1<<62), replace("small", "s", 1<<62))
	if get(f, 0, "log") != string(big) {
		t.Fatal("4 MiB do not come back")
	}
	want := string(big)
	for i := range uint64(50) {
		apply(t, f, 2+i, 1, splice("log", 8, "ABCDEFGH", 1<<62), splice("small", 0, "12345678", 1<<62))
		want = want[8:] + "ABCDEFGH"
	}
	if get(f, 0, "log") != want || len(get(f, 0, "small")) != 401 {
		t.Fatal("splices lost bytes")
	}
	held := f.Table().Bytes()
	apply(t, f, 60, 1, splice("log", 4<<20-8, "", 1<<62))
	if get(f, 0, "log") != "ABCDEFGH" || f.Table().Bytes() > held-4<<20 {
		t.Errorf("after the drop of nearly all: %q, %d bytes of %d", get(f, 0, "log"), f.Table().Bytes(), held)
	}
}

// Keys that come and expire for ever must not make the table grow: what a snapshot has taken is used again.
func TestChurnKeepsMemoryFlat(t *testing.T) {
	f := New(nil)
	const alive = 10000
	var after [12]int64
	next := 0
	for round := range after {
		for range 5 {
			var batch []Effect
			now := f.Time() + 1
			for range alive / 5 {
				e := admit(next, now+5)
				if next%7 == 0 { // and other sizes
					e.State = bytes.Repeat([]byte("x"), next%900)
				}
				batch = append(batch, e)
				next++
			}
			apply(t, f, f.Applied()+1, now, batch...)
			f.Sweep(1 << 30)
		}
		takeAll(f)
		after[round] = f.Table().Bytes()
	}
	if n := f.Table().Len(0); n > alive {
		t.Errorf("%d records, %d are alive", n, alive)
	}
	if slices.Max(after[8:]) > slices.Max(after[1:5])*11/10 {
		t.Errorf("bytes after each round: %v", after)
	}
}

// What expired makes room for new records as soon as a snapshot has taken its
// removal, though the pages stay.
func TestWhatWasRemovedIsNotUsed(t *testing.T) {
	f := New(nil)
	const n = 10_000
	for i := range n {
		expiry := int64(100)
		if i%5 < 2 {
			expiry = 50
		}
		apply(t, f, f.Applied()+1, 1, admit(i, expiry))
	}
	full, held := f.Table().Used(), f.Table().Bytes()
	apply(t, f, f.Applied()+1, 60)
	f.Sweep(1 << 30)
	if now := f.Table().Used(); now < full*9/10 {
		t.Errorf("%d of %d bytes in use before a snapshot has taken the removals", now, full)
	}
	takeAll(f)
	used := int64(0)
	for i := range f.Table().shard {
		s := &f.Table().shard[i]
		used += s.held + int64(len(s.slots))*slotSize - s.idle
	}
	if now := f.Table().Used(); now != used || now > full-n*2/5*32 || f.Table().Bytes() != held {
		t.Errorf("two fifths are gone: %d bytes in use (counted %d) of %d, %d held of %d", now, used, full, f.Table().Bytes(), held)
	}
}

// takeAll is a snapshot that was written.
func takeAll(f *FSM) {
	s, err := f.Snapshot()
	if err != nil {
		panic(err)
	}
	x := s.(*stateSnapshot)
	gather(x)
	x.written = true
	s.Release()
}

func TestMemoryComesBackAfterAPeak(t *testing.T) {
	f := New(nil)
	fill(t, f, 100000, 100)
	fillOther := admit(1<<40, 1<<62)
	apply(t, f, f.Applied()+1, 1, fillOther)
	peak := f.Table().Bytes()
	apply(t, f, f.Applied()+1, 101)
	if n := f.Sweep(1 << 30); n != 100000 {
		t.Fatalf("%d dropped", n)
	}
	if n, _ := f.Pending(); n != 100001 || f.Table().Len(0) != 1 {
		t.Fatalf("pending %d, Len %d", n, f.Table().Len(0))
	}
	takeAll(f)
	f.Sweep(1 << 30)
	if now := f.Table().Bytes(); now > peak/20 {
		t.Errorf("%d bytes are held of %d", now, peak)
	}
	fill(t, f, 100000, 1<<62)
	apply(t, f, f.Applied()+1, 102, Effect{Op: OpClear})
	if now := f.Table().Bytes(); now > peak/20 || f.Table().Len(0) != 0 {
		t.Errorf("%d bytes, %d records are held after a flush", now, f.Table().Len(0))
	}
}

func TestSweepGoesOnWhereItEnded(t *testing.T) {
	f := New(nil)
	fill(t, f, 100000, 50)
	apply(t, f, f.Applied()+1, 50)
	total, calls := 0, 0
	for ; total < 100000 && calls < 1000; calls++ {
		n := f.Sweep(1000)
		if n > 1000+4096 {
			t.Fatalf("one call dropped %d", n)
		}
		total += n
	}
	if total != 100000 || calls > 200 {
		t.Errorf("%d dropped in %d calls", total, calls)
	}
}

func TestScanLooksAtABoundedNumber(t *testing.T) {
	f := New(nil)
	fill(t, f, 100000, 1<<62)
	apply(t, f, f.Applied()+1, 1, Effect{Op: OpReplace, NS: 5, Key: []byte("lonely"), Ident: []byte{1}, Expiry: 1 << 62})
	calls, found := 0, 0
	for cursor := uint64(0); ; calls++ {
		keys, next := f.Table().Scan(5, cursor, 10, 1)
		found += len(keys)
		if cursor = next; next == 0 {
			break
		}
	}
	if found != 1 || calls < 20 || calls > 300 {
		t.Errorf("%d keys in %d calls", found, calls)
	}
	for cursor := uint64(0); ; {
		keys, next := f.Table().Scan(0, cursor, 10, 1)
		if len(keys) > 10 || next != 0 && len(keys) < 10 {
			t.Fatalf("%d keys for a count of 10", len(keys))
		}
		if cursor = next; next == 0 {
			break
		}
	}
	for _, cursor := range []uint64{1 << 40, 1<<64 - 1} {
		if keys, next := f.Table().Scan(0, cursor, 10, 1); len(keys) != 0 || next != 0 {
			t.Errorf("cursor %x: %d keys, next %x", cursor, len(keys), next)
		}
	}
}

// Readers, sweeps, scans and snapshots run while batches are applied (with -race), and each read sees a whole record.
func TestReadersRaceWithApply(t *testing.T) {
	f := New(nil)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	loop := func(fn func(i int)) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					fn(i)
				}
			}
		})
	}
	const keys = 3000
	for range 2 {
		loop(func(i int) {
			tab := f.Table()
			k := key(i % keys)
			h := tab.Hash(0, k)
			state, _, _ := tab.Get(h, 0, k, []byte{1}, nil)
			for _, c := range state {
				if c != state[0] {
					t.Errorf("a torn state %x", state)
				}
			}
			tab.Records(h, 0, k, func(r Record) { _ = string(r.State) })
			if i%200 == 0 {
				tab.Scan(0, uint64(i)<<20, 50, f.Time())
				f.Hashes()
				f.State()
				f.Pending()
				tab.Bytes()
				tab.Len(0)
			}
			tab.View(h, 0, k, []byte{1}, func(state []byte, _ int64) {
				for _, c := range state {
					if c != state[0] {
						t.Errorf("a torn state %x is seen", state)
					}
				}
			})
		})
	}
	loop(func(int) { f.Sweep(500) })
	snapshots := make(chan *stateSnapshot)
	done := make(chan struct{})
	go func() { // raft's snapshot goroutine
		defer close(done)
		for s := range snapshots {
			gather(s)
			s.written = len(s.records)%2 == 0
			s.Release()
		}
	}()
	deadline := time.Now().Add(time.Second)
	for n := 1; time.Now().Before(deadline); n++ {
		var batch []Effect
		if n%50 == 0 {
			batch = append(batch, Effect{Op: OpClear})
		}
		for i := range 100 {
			e := Effect{Op: OpReplace, Key: key((n*37 + i*11) % keys), Ident: []byte{1}, Expiry: int64(n + i%20),
				State: bytes.Repeat([]byte{byte(n)}, i*(n%5)%400)}
			if i%9 == 0 {
				e.Op = OpDelete
			}
			batch = append(batch, e)
		}
		apply(t, f, uint64(n), int64(n), batch...)
		if n%20 == 0 {
			if s, err := f.Snapshot(); err == nil {
				snapshots <- s.(*stateSnapshot)
			}
		}
	}
	close(snapshots)
	<-done
	close(stop)
	wg.Wait()
}

func TestViewShowsWhatGetCopies(t *testing.T) {
	const life = int64(1<<62 + 0x0102030405060708)
	f := New(nil)
	apply(t, f, 1, 10, replace("k", "state", life), replace("tat", string(le64(life)), life), replace("empty", "", life),
		replace("expired", "old", 5), replace("gone", "x", life))
	apply(t, f, 2, 10, Effect{Op: OpDelete, Key: []byte("gone"), Ident: []byte{1}})
	tab := f.Table()
	for _, k := range []string{"k", "tat", "empty", "expired", "gone", "never"} {
		key := []byte(k)
		h := tab.Hash(0, key)
		calls := 0
		state, expiry, ok := tab.Get(h, 0, key, []byte{1}, nil)
		seen := tab.View(h, 0, key, []byte{1}, func(s []byte, e int64) {
			if calls++; !bytes.Equal(s, state) || e != expiry {
				t.Errorf("%s: %q, %d; Get says %q, %d", k, s, e, state, expiry)
			}
		})
		if seen != ok || seen != (calls == 1) {
			t.Errorf("%s: seen %v in %d calls; Get says %v", k, seen, calls, ok)
		}
	}
	k := []byte("k")
	h := tab.Hash(0, k)
	if n := testing.AllocsPerRun(100, func() { tab.View(h, 0, k, []byte{1}, func([]byte, int64) {}) }); n != 0 {
		t.Errorf("View allocates %v times", n)
	}
	if tab.View(h, 0, k, []byte{2}, func([]byte, int64) { t.Error("another identity was seen") }) {
		t.Error("a record of another identity is there")
	}
}

func TestSplice(t *testing.T) {
	const life = int64(1<<62 + 0x0102030405060708)
	for _, c := range []struct {
		name string
		in   []Effect
		want string
	}{
		{"of nothing", []Effect{splice("k", 0, "tail", life)}, "tail"},
		{"appends", []Effect{replace("k", "12345", life), splice("k", 0, "67", life)}, "1234567"},
		{"drops", []Effect{replace("k", "12345", life), splice("k", 2, "", life)}, "345"},
		{"drops all", []Effect{replace("k", "12345", life), splice("k", 5, "x", life)}, "x"},
		{"drops and appends the same", []Effect{replace("k", "12345", life), splice("k", 2, "67", life)}, "34567"},
		{"of an expired record", []Effect{replace("k", "12345", 5), splice("k", 0, "x", life)}, "x"},
		{"of a deleted record", []Effect{replace("k", "12345", life), {Op: OpDelete, Key: []byte("k"), Ident: []byte{1}}, splice("k", 0, "x", life)}, "x"},
		{"of a cleared record", []Effect{replace("k", "12345", life), {Op: OpClear}, splice("k", 0, "x", life)}, "x"},
		{"of a record of another namespace", []Effect{replace("k", "12345", life), {Op: OpClear, NS: 1}, splice("k", 1, "x", life)}, "2345x"},
		{"of a time", []Effect{replace("k", string(le64(life)), life), splice("k", 2, "long enough to move", life)}, string(le64(life)[2:]) + "long enough to move"},
		{"becomes a time", []Effect{replace("k", "1234", life), splice("k", 4, string(le64(life)), life)}, string(le64(life))},
		{"cuts", []Effect{replace("k", "12345", life), cut("k", 0, 2, "", life)}, "123"},
		{"cuts all", []Effect{replace("k", "12345", life), cut("k", 0, 5, "", life)}, ""},
		{"drops, cuts and appends", []Effect{replace("k", "12345", life), cut("k", 1, 2, "678", life)}, "23678"},
		{"drops and cuts all", []Effect{replace("k", "12345", life), cut("k", 2, 3, "6", life)}, "6"},
		{"cuts and moves", []Effect{replace("k", "12345", life), cut("k", 1, 1, "long enough to move it to another place", life)}, "234long enough to move it to another place"},
		{"cuts a time", []Effect{replace("k", string(le64(life)), life), cut("k", 0, 7, "", life)}, string(le64(life)[:1])},
		{"drops and cuts a time", []Effect{replace("k", string(le64(life)), life), cut("k", 2, 3, "x", life-1)}, string(le64(life)[2:5]) + "x"},
		{"cuts and shrinks", []Effect{replace("k", strings.Repeat("12345", 1000), life), cut("k", 1, 4990, "x", life)}, "234512345x"},
		{"cuts what is new", []Effect{replace("k", "12345", life), splice("k", 0, "67", life), cut("k", 0, 3, "8", life)}, "12348"},
		{"three times", []Effect{splice("k", 0, "abc", life), splice("k", 1, "def", life), splice("k", 4, "", life)}, "f"},
	} {
		f := New(nil)
		apply(t, f, 1, 10, c.in...)
		if got := get(f, 0, "k"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSpliceThatIsImpossibleChangesNothing(t *testing.T) {
	large := string(make([]byte, MaxState))
	for _, in := range [][]Effect{
		{splice("k", 1, "x", 100)},
		{replace("k", "123", 100), splice("k", 4, "x", 100)},
		{replace("k", "123", 5), splice("k", 1, "x", 100)},
		{splice("kept", 1, "", 100), splice("kept", 1, "", 100), splice("kept", 2, "", 100)},
		{{Op: OpClear}, splice("kept", 1, "", 100)},
		{splice("kept", 1, "", 100), {Op: OpDelete, Key: []byte("kept"), Ident: []byte{1}}, splice("kept", 1, "", 100)},
		{splice("kept", 0, large, 100)},
		{cut("k", 0, 1, "", 100)},
		{cut("kept", 0, 4, "", 100)},
		{cut("kept", 2, 2, "", 100)},
		{cut("kept", 0, 2, "", 100), cut("kept", 0, 2, "", 100)},
		{cut("kept", 0, 2, "", 11), cut("kept", 0, 1, "", 100)},
		{{Op: OpClearAll}, cut("kept", 0, 1, "", 100)},
		{cut("kept", 1, 1, large, 100)},
	} {
		f := New(nil)
		apply(t, f, 1, 10, replace("kept", "123", 100))
		in = append([]Effect{replace("other", "x", 100)}, in...)
		if r := f.Apply(logOf(2, Turn{1, 1, 11, ReadsEntry}, in...)).(Result); r.Outcome != Void || get(f, 0, "other") != "-" || get(f, 0, "kept") != "123" {
			t.Errorf("%+v: %v, %q", in[1:], r, get(f, 0, "kept"))
		}
	}
}
