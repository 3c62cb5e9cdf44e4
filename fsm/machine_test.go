package fsm

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"limitd/snapshot"
)

// model is the state as plain maps: name as on disk -> record.
type model struct {
	records map[string]snapshot.Record
	state   State
}

func (m model) clone() model { return model{maps.Clone(m.records), m.state} }

// alive are the records that mean something at T.
func (m model) alive() map[string]snapshot.Record {
	a := map[string]snapshot.Record{}
	for n, r := range m.records {
		if r.Expiry > m.state.T {
			a[n] = r
		}
	}
	return a
}

// apply is what FORMAT.md and the package comment say, without any cleverness.
func (m *model) apply(l *raft.Log) Outcome {
	turn, effects, err := decodeAll(l.Data)
	if err != nil {
		return Unknown
	}
	was := m.clone()
	m.state.Applied, was.state.Applied = l.Index, l.Index
	if turn.Base != m.state.Last || turn.Term != l.Term {
		return Void
	}
	m.state.Last, m.state.T = l.Index, max(m.state.T, turn.At)
	m.state.Chain = link(m.state.Chain, l.Index, l.Data)
	for _, e := range effects {
		name := string(snapshot.AppendName(nil, e.NS, e.Key, e.Ident))
		r := snapshot.Record{State: e.State, Expiry: e.Expiry}
		switch e.Op {
		case OpReplace:
			m.records[name] = r
		case OpSplice:
			var before []byte
			if b, ok := m.records[name]; ok && b.Expiry > m.state.T {
				before = b.State
			}
			if e.Drop+e.Cut > len(before) {
				*m = was
				return Void
			}
			r.State = slices.Concat(before[e.Drop:len(before)-e.Cut], e.State)
			m.records[name] = r
		case OpDelete:
			delete(m.records, name)
		case OpClear, OpClearAll:
			for n := range m.records {
				if e.Op == OpClearAll || n[0] == e.NS {
					delete(m.records, n)
				}
			}
		case OpSetCluster:
			copy(m.state.ClusterID[:], e.State)
			m.state.Generation = 1
		}
	}
	return Applied
}

// world is a node under test with its store, the log it follows, and what its state is at each index.
type world struct {
	t     *rapid.T
	dir   string
	store *snapshot.Store
	f     *FSM
	log   []*raft.Log
	at    []model // after log[:i]

	running raft.FSMSnapshot // with the index it was taken at
	taken   int
	stale   bool // a restore came since
	portion int  // records of a snapshot that go to the store at once
}

func (w *world) open() {
	s, err := snapshot.OpenStore(w.dir, snapshot.Options{MaxFileSize: 1 << 26})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = s
}

// machine is a new one, whose snapshots go to the store in portions of so many records.
func (w *world) machine() *FSM {
	f := New(w.store)
	f.portion = w.portion
	return f
}

// extend adds a batch to the log, and says what it does.
func (w *world) extend(t *rapid.T) {
	m := w.at[len(w.at)-1].clone()
	turn := Turn{m.state.Last, 1, m.state.T + rapid.Int64Range(-3, 10).Draw(t, "step"), rapid.Uint8Range(1, ReadsEntry).Draw(t, "version")}
	if rapid.IntRange(0, 9).Draw(t, "void") == 0 && turn.Base > 0 {
		turn.Base--
	}
	state := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 20), rapid.SliceOfN(rapid.Byte(), 8, 8),
		rapid.Map(rapid.SampledFrom([]int{100, 2000, 30000}), func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n) }))
	var effects []Effect
	for range rapid.IntRange(0, 12).Draw(t, "effects") {
		e := Effect{
			Op:    rapid.SampledFrom([]Op{OpReplace, OpReplace, OpReplace, OpSplice, OpSplice, OpDelete}).Draw(t, "op"),
			NS:    uint8(rapid.IntRange(0, 2).Draw(t, "ns")),
			Key:   fmt.Append(nil, "key", rapid.IntRange(0, 25).Draw(t, "key")),
			Ident: []byte{byte(rapid.IntRange(1, 3).Draw(t, "ident"))},
		}
		if rapid.IntRange(0, 40).Draw(t, "clear") == 0 {
			e.Op = rapid.SampledFrom([]Op{OpClear, OpClearAll}).Draw(t, "clear what")
		}
		if e.Op == OpReplace || e.Op == OpSplice {
			e.Expiry = turn.At + rapid.Int64Range(-2, 40).Draw(t, "life")
			e.State = state.Draw(t, "state")
			if len(e.State) == 8 && rapid.Bool().Draw(t, "state is expiry") {
				e.State = le64(e.Expiry)
			}
		}
		if e.Op == OpSplice { // nearly always what the state allows, as if it were the first of the batch on the record
			e.Drop = rapid.IntRange(0, 2).Draw(t, "drop")
			if r, ok := m.records[string(snapshot.AppendName(nil, e.NS, e.Key, e.Ident))]; ok && rapid.Bool().Draw(t, "drop much") {
				e.Drop = len(r.State) * 3 / 4
			}
			if r := m.alive()[string(snapshot.AppendName(nil, e.NS, e.Key, e.Ident))]; rapid.IntRange(0, 20).Draw(t, "drop wrong") > 0 {
				e.Drop = min(e.Drop, len(r.State))
			}
			if turn.Version >= VersionCut && rapid.Bool().Draw(t, "cut") {
				e.Cut = rapid.IntRange(0, 2).Draw(t, "bytes to cut")
				if r := m.alive()[string(snapshot.AppendName(nil, e.NS, e.Key, e.Ident))]; rapid.IntRange(0, 20).Draw(t, "cut wrong") > 0 {
					e.Cut = min(e.Cut, max(0, len(r.State)-e.Drop))
				}
			}
		}
		effects = append(effects, e)
	}
	if len(w.log) == 0 {
		turn.Base, effects = 0, append(effects, setCluster(9, 1))
	}
	l := logOf(uint64(len(w.log)+1), turn, effects...)
	m.apply(l)
	w.log, w.at = append(w.log, l), append(w.at, m)
}

// catchUp applies up to n entries of the log.
func (w *world) catchUp(n int) {
	for ; n > 0 && int(w.f.Applied()) < len(w.log); n-- {
		i := int(w.f.Applied())
		was := w.at[i].clone()
		want := was.apply(w.log[i])
		if r := w.f.Apply(w.log[i]).(Result); r.Err != nil || r.Outcome != want {
			w.t.Fatalf("entry %d: %v, %v, want %v", i+1, r.Outcome, r.Err, want)
		}
	}
}

func (w *world) begin() {
	s, err := w.f.Snapshot()
	if (err == nil) != (w.running == nil || w.stale) {
		w.t.Fatalf("running %v, stale %v: %v", w.running != nil, w.stale, err)
	}
	if err == nil {
		if w.running != nil {
			w.running.Release()
		}
		w.running, w.taken, w.stale = s, int(w.f.Applied()), false
	}
}

func (w *world) sink(s *snapshot.Store, index int) raft.SnapshotSink {
	k, err := s.Create(1, uint64(index), 1, raft.Configuration{}, 1, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

// end persists the running snapshot, or lets that fail in one of the ways it can, and releases it.
func (w *world) end(how string) {
	s := w.running
	w.running = nil
	defer w.inFile()
	switch how {
	case "never persisted":
	case "foreign sink":
		if s.Persist(foreign{}) == nil {
			w.t.Fatal("a foreign sink was accepted")
		}
	case "failed":
		k := w.sink(w.store, w.taken)
		k.Cancel() // Commit refuses a sink that is closed
		if s.Persist(k) == nil {
			w.t.Fatal("a closed sink was accepted")
		}
	case "no new file": // which is all that a snapshot of one portion does not need
		k := w.sink(w.store, w.taken)
		occupied := filepath.Join(w.dir, "snapshot.next")
		if err := os.MkdirAll(filepath.Join(occupied, "by something"), 0o700); err != nil {
			w.t.Fatal(err)
		}
		err := s.Persist(k)
		if e := os.RemoveAll(occupied); e != nil {
			w.t.Fatal(e)
		}
		if err == nil {
			if err := k.Close(); err != nil {
				w.t.Fatal(err)
			}
		}
	default:
		k := w.sink(w.store, w.taken)
		m, _ := w.store.Meta()
		if err := s.Persist(k); (err == nil) != (m.Index <= uint64(w.taken)) {
			w.t.Fatalf("persist at %d over %d: %v", w.taken, m.Index, err)
		} else if err == nil {
			if err := k.Close(); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	s.Release()
}

type foreign struct{ io.WriteCloser }

func (foreign) ID() string    { return "foreign" }
func (foreign) Cancel() error { return nil }

// inFile compares the file with the state at its index.
func (w *world) inFile() {
	if m, ok := w.store.Meta(); ok {
		r := w.reader()
		defer r.Close()
		got := map[string]snapshot.Record{}
		if err := r.Each(func(x snapshot.Record) error {
			got[string(x.Name)] = snapshot.Record{State: bytes.Clone(x.State), Expiry: x.Expiry}
			return nil
		}); err != nil {
			w.t.Fatal(err)
		}
		want := w.at[m.Index]
		if m.Header != want.state.Header {
			w.t.Fatalf("file at %d: %+v, want %+v", m.Index, m.Header, want.state.Header)
		}
		w.equal(fmt.Sprintf("file at %d", m.Index), got, want.alive())
	}
}

func (w *world) equal(what string, got, want map[string]snapshot.Record) {
	for n, r := range want {
		if g, ok := got[n]; !ok || g.Expiry != r.Expiry || !bytes.Equal(g.State, r.State) {
			w.t.Fatalf("%s: %q is %v (%v), want %v", what, n, g, ok, r)
		}
	}
	for n := range got {
		if _, ok := want[n]; !ok {
			w.t.Fatalf("%s: %q should not be there", what, n)
		}
	}
}

func (w *world) reader() *snapshot.Reader {
	list, err := w.store.List()
	if err != nil || len(list) != 1 {
		w.t.Fatal(len(list), err)
	}
	_, rc, err := w.store.Open(list[0].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	r, _ := snapshot.FromReader(rc)
	return r
}

// restart forgets the memory and loads the file.
func (w *world) restart() {
	if w.running != nil {
		w.running.Release()
		w.running, w.stale = nil, false
	}
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
	w.f = w.machine()
	w.restore()
}

func (w *world) restore() {
	if _, ok := w.store.Meta(); !ok {
		return
	}
	r := w.reader()
	defer r.Close()
	index, applied := r.Meta().Index, w.f.Applied()
	if err := w.f.Restore(r); (err == nil) != (index >= applied) {
		w.t.Fatalf("restore of %d at %d: %v", index, applied, err)
	}
	if index > applied || applied == 0 {
		w.stale = w.running != nil
	}
}

// install is what a leader does to a node that fell behind: its stream replaces the file.
func (w *world) install(t *rapid.T) {
	at := rapid.IntRange(int(w.f.Applied()), len(w.log)).Draw(t, "index")
	m := w.at[at]
	if old, _ := w.store.Meta(); at == 0 || old.Index > uint64(at) {
		return
	}
	k := w.sink(w.store, at)
	sw := snapshot.NewStreamWriter(k, m.state.Header)
	alive := m.alive()
	for _, n := range slices.Sorted(maps.Keys(alive)) {
		r := alive[n]
		r.Name = []byte(n)
		if err := sw.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	w.restore()
}

// check compares what readers see with the model.
func (w *world) check() {
	m := w.at[w.f.Applied()]
	if got := w.f.State(); got != m.state {
		w.t.Fatalf("state %+v, want %+v", got, m.state)
	}
	t := w.f.Table()
	got, live, alive := map[string]snapshot.Record{}, map[string]bool{}, m.alive()
	var count, seen [256]int
	blocks := 0
	for ns := range uint8(3) {
		for key := range 26 {
			key := fmt.Append(nil, "key", key)
			h := t.Hash(ns, key)
			t.Records(h, ns, key, func(r Record) {
				seen[ns]++
				if state, expiry, ok := t.Get(h, ns, key, r.Ident, nil); !ok || expiry != r.Expiry || !bytes.Equal(state, r.State) {
					w.t.Fatalf("Get and Records differ on %q", key)
				}
				if r.Expiry > m.state.T {
					got[string(snapshot.AppendName(nil, ns, key, r.Ident))] = snapshot.Record{State: bytes.Clone(r.State), Expiry: r.Expiry}
					if !live[string(ns)+string(key)] {
						count[ns]++
					}
					live[string(ns)+string(key)] = true
				}
			})
		}
		if t.Len(ns) != seen[ns] {
			w.t.Fatalf("Len(%d) is %d of %d", ns, t.Len(ns), seen[ns])
		}
		keys := 0
		for cursor, calls := uint64(0), 0; ; calls++ {
			some, next := t.Scan(ns, cursor, 3, m.state.T)
			keys += len(some)
			for _, k := range some {
				if !live[string(ns)+string(k)] {
					w.t.Fatalf("scan: %q is not live, or came twice", k)
				}
				delete(live, string(ns)+string(k))
			}
			if next == 0 {
				break
			} else if next <= cursor || next >= 1<<40 || calls > 1000 {
				w.t.Fatalf("scan: cursor %x after %x", next, cursor)
			}
			cursor = next
		}
		if keys != count[ns] {
			w.t.Fatalf("scan finds %d keys of %d", keys, count[ns])
		}
	}
	w.equal("table", got, alive)

	bytes, dirty := int64(0), 0
	for i := range t.shard {
		s := &t.shard[i]
		bytes += s.arena.held + int64(len(s.slots))*slotSize
		marked, pending := 0, 0
		for p := range s.pages {
			s.walk(p, func(_ uint32, b block) {
				blocks++
				if b.is(s.cur) {
					marked++
				}
				if b.is(s.other()) {
					pending++
				}
				if b.is(s.cur) && b.is(s.other()) || b.is(flagTomb) && !b.is(flagDirty) {
					w.t.Fatalf("flags %b", b[blkFlags])
				}
			})
		}
		if marked != s.dirty || pending != s.pending || (w.running == nil || w.stale) && pending > 0 {
			w.t.Fatalf("%d dirty of %d, %d pending of %d", marked, s.dirty, pending, s.pending)
		}
		blocks -= s.n
		dirty += marked
	}
	if n, _ := w.f.Pending(); n != dirty || t.Bytes() != bytes || blocks != 0 {
		w.t.Fatalf("pending %d of %d, bytes %d of %d, %d blocks more than slots", n, dirty, t.Bytes(), bytes, blocks)
	}
}

// The machine against plain maps: batches, sweeps, snapshots that succeed or fail in each way, restarts and installs in any order.
// After each step the table, and after each snapshot the file, hold exactly the state of their index.
func TestMachineAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := "/dev/shm" // nothing here depends on a disk, and hundreds of synced files do
		if _, err := os.Stat(parent); err != nil {
			parent = ""
		}
		dir, err := os.MkdirTemp(parent, "limitd-fsm")
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, dir: dir, at: []model{{records: map[string]snapshot.Record{}}}}
		w.open()
		w.portion = rapid.SampledFrom([]int{1, 2, 7, portionRecords}).Draw(t, "portion")
		w.f = w.machine()
		defer os.RemoveAll(dir)
		defer func() { w.store.Close() }()
		actions := map[string]func(*rapid.T){
			"":       func(*rapid.T) { w.check() },
			"extend": w.extend,
			"apply":  func(t *rapid.T) { w.catchUp(rapid.IntRange(1, 10).Draw(t, "entries")) },
			"extend and apply": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "entries") {
					w.extend(t)
				}
				w.catchUp(5)
			},
			"sweep": func(t *rapid.T) { w.f.Sweep(rapid.IntRange(1, 2000).Draw(t, "slots")) },
			"snapshot": func(t *rapid.T) {
				if w.f.Applied() > 0 {
					w.begin()
				}
			},
			"persist": func(t *rapid.T) {
				if w.running != nil {
					w.end("")
				}
			},
			"persist fails": func(t *rapid.T) {
				if w.running != nil {
					w.end(rapid.SampledFrom([]string{"never persisted", "foreign sink", "failed", "no new file"}).Draw(t, "how"))
				}
			},
			"restart": func(t *rapid.T) { w.restart() },
			"install": w.install,
		}
		t.Repeat(actions)
		if w.running != nil {
			w.end("")
		}
		w.check()
		// A snapshot of everything, loaded again, is the same state.
		if w.catchUp(len(w.log)); w.f.Applied() > 0 {
			w.begin()
			w.end("")
			w.restart()
			w.check()
		}
	})
}
